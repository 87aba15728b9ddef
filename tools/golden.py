#!/usr/bin/env python3
"""Makes tests/golden/*.json with PyTorch; tests/golden/README.md says what they hold.

usage: python3 tools/golden.py [FOLDER]        (needs PyTorch; the default folder is tests/golden)

The same version of PyTorch gives the same files. Nothing here reads outrace: the values are PyTorch's alone.
"""
import pathlib
import sys

import torch
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))  # the families that have a module of their own

from common import numbers, write
from optimizers import optimizers
from schedulers import schedulers

DTYPES = {"f32": torch.float32, "f64": torch.float64}


# --- training -------------------------------------------------------------------------------------------------------

STEPS = 20
NETWORKS = {  # sizes of the layers, activation between them, rows of a batch
    "relu": ([20, 16, 5], torch.relu, 16),
    "tanh": ([12, 10, 8, 4], torch.tanh, 16),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum_decay": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=1e-2),
}


def train(sizes, activation, start, inputs, targets, dtype, make_optimizer):
    layers = [torch.nn.Linear(a, b, dtype=dtype) for a, b in zip(sizes, sizes[1:])]
    parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
    with torch.no_grad():
        for parameter, value in zip(parameters, start.values()):
            parameter.copy_(value)
    optimizer = make_optimizer(parameters)
    losses = []
    for x, target in zip(inputs.to(dtype), targets):
        for i, layer in enumerate(layers):
            x = layer(x if i == 0 else activation(x))
        loss = F.cross_entropy(x, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), dict(zip(start, parameters))


def training(folder):
    for network, (sizes, activation, batch) in NETWORKS.items():
        torch.manual_seed(1)
        # Few decimals, so that both dtypes start from the same text. Labels follow a linear rule, which can be learnt.
        inputs = torch.randn(STEPS, batch, sizes[0], dtype=torch.float64).round(decimals=2)
        targets = (inputs @ torch.randn(sizes[0], sizes[-1], dtype=torch.float64)).argmax(-1)
        start = {}
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            start[f"{i}.weight"] = ((torch.rand(b, a, dtype=torch.float64) * 2 - 1) / a**0.5).round(decimals=4)
            start[f"{i}.bias"] = ((torch.rand(b, dtype=torch.float64) * 2 - 1) / a**0.5).round(decimals=4)
        groups = {"inputs": numbers(inputs), "targets": numbers(targets)}
        groups["start"] = {k: numbers(v) for k, v in start.items()}
        for name, make_optimizer in OPTIMIZERS.items():
            groups[name] = {}
            kept = {}
            for key, dtype in DTYPES.items():
                losses, end = train(sizes, activation, start, inputs, targets, dtype, make_optimizer)
                groups[name][key] = {"losses": numbers(losses), "end": {k: numbers(v) for k, v in end.items()}}
                kept[key] = (losses.double(), torch.cat([p.detach().flatten().double() for p in end.values()]))
            loss_gap = ((kept["f32"][0] - kept["f64"][0]) / kept["f64"][0]).abs().max().item()
            end_gap = (kept["f32"][1] - kept["f64"][1]).abs().max().item()
            losses = kept["f64"][0]
            print(f"train_{network} {name}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; f32 against f64: "
                  f"losses {loss_gap:.1e} relative, weights {end_gap:.1e}")
            assert loss_gap < 5e-7, "f32 itself is too coarse here for a comparison to 1e-6"
        write(folder, f"train_{network}", groups)


# --- softmax and cross-entropy --------------------------------------------------------------------------------------

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


def softmax(folder):
    torch.manual_seed(2)
    inputs = {
        "plain": torch.randn(4, 6, dtype=torch.float64).round(decimals=2),
        "large": torch.tensor([[1000.0, 999.0, -1000.0], [-1e4, -1e4, -9999.0]], dtype=torch.float64),
        "one_class": torch.tensor([[3.0], [-2.0]], dtype=torch.float64),
        "minus_infinity": torch.tensor([[0.5, -torch.inf, 1.5], [-torch.inf, 2.0, -torch.inf]], dtype=torch.float64),
    }
    three = torch.randn(2, 3, 4, dtype=torch.float64).round(decimals=2)
    groups = {}
    for name, function in {"softmax": torch.softmax, "log_softmax": torch.log_softmax}.items():
        groups[name] = {k: with_gradients(lambda x: function(x, -1), 3, x=x) for k, x in inputs.items()
                        # log 0 is -inf and its gradient 0 * inf: only softmax has a case for a masked class
                        if (name, k) != ("log_softmax", "minus_infinity")}
        for axis in range(3):
            groups[name][f"axis_{axis}"] = with_gradients(lambda x: function(x, axis), 3, x=three)
    write(folder, "softmax", groups)


def cross_entropy(folder):
    torch.manual_seed(4)
    logits = torch.randn(6, 5, dtype=torch.float64).round(decimals=2)
    target = torch.tensor([0, 4, 2, 2, 1, 3])
    ignored = torch.tensor([0, -100, 2, 2, -100, 3])
    weight = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5], dtype=torch.float64)
    shares = torch.softmax(torch.randn(6, 5, dtype=torch.float64), -1).round(decimals=4)
    cases = {
        "plain": (target, {}),
        "large_logits": (target, {}),
        "ignore_index": (ignored, {}),
        "weight": (target, {"weight": weight}),
        "label_smoothing": (target, {"label_smoothing": 0.1}),
        "all": (ignored, {"weight": weight, "label_smoothing": 0.1}),
        "probabilities": (shares, {}),
    }
    groups = {"weight_values": numbers(weight), "smoothing_value": 0.1}
    for name, (t, options) in cases.items():
        x = logits * 400 if name == "large_logits" else logits
        for reduction in ("none", "mean", "sum"):
            case = with_gradients(lambda x: F.cross_entropy(x, t, reduction=reduction, **options), 5, x=x)
            groups.setdefault(name, {"target": numbers(t), "x": case.pop("x")})
            case.pop("x", None)
            groups[name][reduction] = case
    write(folder, "cross_entropy", groups)


# --- elementwise ----------------------------------------------------------------------------------------------------

def grid(low, high):
    return torch.linspace(low, high, 13, dtype=torch.float64)


TIES = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
# Where rounding, overflow or a pole decides. PyTorch's sign(nan) is 0; ours keeps the NaN, so `sign` leaves it out.
SPECIAL = [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 5e-324, 1e-310, 1e-20, 1e20, 1.5e308, -1.5e308]
SPECIAL += [709.0, 710.0, -745.0, -746.0, 20.0, -40.0]
UNARY = {  # function of PyTorch, range
    "neg": (torch.neg, -3, 3),
    "abs": (torch.abs, -3, 3),
    "sign": (torch.sign, -3, 3),
    "square": (torch.square, -3, 3),
    "exp": (torch.exp, -30, 30),
    "log": (torch.log, 0.01, 40),
    "sqrt": (torch.sqrt, 0.01, 40),
    "rsqrt": (torch.rsqrt, 0.01, 40),
    "reciprocal": (torch.reciprocal, 0.1, 4),
    "relu": (torch.relu, -3, 3),
    "sigmoid": (torch.sigmoid, -36, 36),
    "tanh": (torch.tanh, -20, 20),
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}


def elementwise(folder):
    groups = {"unary": {}, "binary": {}}
    for name, (function, low, high) in UNARY.items():
        case = with_gradients(function, 6, x=grid(low, high))
        special = torch.tensor([v for v in SPECIAL if name != "sign" or v == v], dtype=torch.float64)
        case["special"] = {"x": numbers(special), "y": numbers(function(special))}
        groups["unary"][name] = case
    x, z = torch.cat([grid(-3, 3), TIES]), torch.cat([grid(2.5, 0.5), TIES])
    for name, function in BINARY.items():
        # division: no tie at 0 / 0
        keep = slice(None, 13) if name == "div" else slice(None)
        groups["binary"][name] = with_gradients(lambda x, z: function(x, z), 7, x=x[keep], z=z[keep])
    write(folder, "elementwise", groups)


if __name__ == "__main__":
    default_folder = pathlib.Path(__file__).parents[1] / "tests/golden"
    target_folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default_folder
    torch.set_num_threads(1)
    print("PyTorch", torch.__version__)
    for make in (training, softmax, cross_entropy, elementwise, optimizers, schedulers):
        make(target_folder)
