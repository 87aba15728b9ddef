#!/usr/bin/env python3
"""Single ops beside PyTorch's: `./run bench ops` and PyTorch in turn, several rounds, best of each.

usage: compare_ops.py [--filter TEXT] [--size 4096] [--rounds 3] [--at-least RATIO] [--ours './run bench ops ...']
Run it from the root of the project with a Python that has PyTorch. The ratio is PyTorch's time / ours: above 1 we are
faster. With --at-least it fails where an op is below that ratio. Nothing else may run meanwhile.
"""
import argparse
import json
import shlex
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

FEWEST_SAMPLES, MOST_SAMPLES, MEASURED_S = 5, 40, 0.4  # as app/bench_ops.cpp
ADAM_PARAMETERS = 100_000_000


def layer_norm_backward(x, z, row):
    x = x.clone().requires_grad_()
    weight, bias = row.clone().requires_grad_(), row.clone().requires_grad_()
    y = F.layer_norm(x, x.shape[-1:], weight, bias)
    return lambda: torch.autograd.grad(y, (x, weight, bias), z, retain_graph=True)


def with_index(function):
    def make(x, z, row):
        index = torch.randint(0, x.shape[0], (x.shape[0],))
        return lambda: function(x, index)

    return make


def adam(x, z, row):
    p = torch.zeros(ADAM_PARAMETERS, requires_grad=True)
    p.grad = torch.full_like(p, 1e-3)
    return torch.optim.Adam([p], fused=True).step


OPS = {  # name in `outrace bench ops`: arrays -> the function that is timed
    "copy": lambda x, z, row: x.clone,
    "add": lambda x, z, row: lambda: x + z,
    "chain of 4": lambda x, z, row: lambda: torch.relu(x * z + x) * 0.5,
    "exp": lambda x, z, row: lambda: torch.exp(x),
    "tanh": lambda x, z, row: lambda: torch.tanh(x),
    "sigmoid": lambda x, z, row: lambda: torch.sigmoid(x),
    "gelu": lambda x, z, row: lambda: F.gelu(x),
    "sum": lambda x, z, row: lambda: torch.sum(x),
    "sum of rows": lambda x, z, row: lambda: torch.sum(x, 1),
    "sum of columns": lambda x, z, row: lambda: torch.sum(x, 0),
    "max of rows": lambda x, z, row: lambda: torch.amax(x, 1),
    "prod of rows": lambda x, z, row: lambda: torch.prod(x, 1),
    "argmax of rows": lambda x, z, row: lambda: torch.argmax(x, 1),
    "var of rows": lambda x, z, row: lambda: torch.var(x, 1),
    "logsumexp of rows": lambda x, z, row: lambda: torch.logsumexp(x, 1),
    "cumsum of rows": lambda x, z, row: lambda: torch.cumsum(x, 1),
    "sort of rows": lambda x, z, row: lambda: torch.sort(x, 1),
    "softmax": lambda x, z, row: lambda: torch.softmax(x, -1),
    "log_softmax": lambda x, z, row: lambda: torch.log_softmax(x, -1),
    "layer_norm": lambda x, z, row: lambda: F.layer_norm(x, x.shape[-1:], row, row),
    "layer_norm backward": layer_norm_backward,
    "rms_norm": lambda x, z, row: lambda: F.rms_norm(x, x.shape[-1:], row, 1e-6),
    "cross_entropy": with_index(F.cross_entropy),
    "cat": lambda x, z, row: lambda: torch.cat([x, z]),
    "embedding": with_index(lambda x, i: F.embedding(i, x)),
    "transpose": lambda x, z, row: lambda: x.t().contiguous(),
    "matmul": lambda x, z, row: lambda: x @ z,
    "adam": adam,
}


def measure(run):
    run()
    samples = []
    start = time.perf_counter()
    while len(samples) < FEWEST_SAMPLES or (time.perf_counter() - start < MEASURED_S and len(samples) < MOST_SAMPLES):
        begin = time.perf_counter()
        run()
        samples.append((time.perf_counter() - begin) * 1e3)
    return min(samples)


def torch_figures(names, size):
    """One process a round, so that no memory of ours or of the round before is in the way."""
    torch.manual_seed(1)
    x, z, row = torch.randn(size, size), torch.randn(size, size), torch.randn(size)
    return {name: measure(OPS[name](x, z, row)) for name in names if name in OPS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-least", type=float, default=0)
    parser.add_argument("--ours", default="./run bench ops --json --size {size} --filter '{filter}'")
    parser.add_argument("--peer", metavar="NAMES", help=argparse.SUPPRESS)  # this script as the peer's process
    a = parser.parse_args()
    if a.peer:
        print(json.dumps(torch_figures(json.loads(a.peer), a.size)))
        return 0

    ours, theirs, share = {}, {}, {}
    for _ in range(a.rounds):
        command = shlex.split(a.ours.format(size=a.size, filter=a.filter))
        rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["ops"]
        for row in rows:
            ours[row["op"]] = min(row["ms"], ours.get(row["op"], 1e30))
            share[row["op"]] = max(row["roof_share"], share.get(row["op"], 0))
        peer = [sys.executable, __file__, "--size", str(a.size), "--peer", json.dumps([row["op"] for row in rows])]
        output = subprocess.run(peer, check=True, stdout=subprocess.PIPE, text=True).stdout
        for name, ms in json.loads(output).items():
            theirs[name] = min(ms, theirs.get(name, 1e30))

    print(f"{'op':<24}{'ours, ms':>10}{'of roof':>9}{'PyTorch, ms':>13}{'ratio':>8}")
    below = []
    for name, ms in ours.items():
        line = f"{name:<24}{ms:>10.3f}{share[name]:>9.0%}"
        if name in theirs:
            ratio = theirs[name] / ms
            line += f"{theirs[name]:>13.3f}{ratio:>8.2f}"
            if ratio < a.at_least:
                below.append(name)
        print(line)
    if below:
        print(f"below {a.at_least}: {', '.join(below)}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
