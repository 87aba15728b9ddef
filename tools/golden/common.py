"""How the golden values are written; used by tools/golden.py and the modules beside this one."""
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
