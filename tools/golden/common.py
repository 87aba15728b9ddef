"""What the makers of golden values share: how numbers are written, and a function with its gradients."""
import json

import numpy as np
import torch


def numbers(tensor):
    """Nested lists with the fewest digits that give the same bits back; what JSON cannot hold becomes a string."""
    array = tensor.detach().numpy() if torch.is_tensor(tensor) else np.asarray(tensor)

    def one(value):
        if isinstance(value, (np.integer, int)):
            return int(value)
        return float(str(value)) if np.isfinite(value) else str(value)

    return one(array[()]) if array.ndim == 0 else [numbers(row) for row in array]


def write(folder, name, groups):
    """One array a line, so that a change is seen where it is."""

    def text(value, indent):
        if not isinstance(value, dict):
            return json.dumps(value, separators=(",", ":"), allow_nan=False)
        pad = " " * (indent + 1)
        rows = ",\n".join(f'{pad}"{key}": {text(element, indent + 1)}' for key, element in value.items())
        return "{\n" + rows + "\n" + " " * indent + "}"

    path = folder / f"{name}.json"
    path.write_text(text(groups, 0) + "\n")
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB")


def with_gradients(function, upstream_seed, **inputs):
    """The inputs, the output, an upstream gradient and the gradient of each differentiable input."""
    leaves = {k: v.clone().requires_grad_(v.is_floating_point()) for k, v in inputs.items()}
    out = function(**leaves)
    generator = torch.Generator().manual_seed(upstream_seed)
    upstream = torch.randn(out.shape, generator=generator, dtype=torch.float64).round(decimals=2)
    out.backward(upstream)
    case = {k: numbers(v) for k, v in inputs.items()}
    case |= {"y": numbers(out), "g": numbers(upstream)}
    case |= {f"d{k}": numbers(v.grad) for k, v in leaves.items() if v.grad is not None}
    return case
