"""Twenty steps of two small networks with five optimizers: tests/golden/train_*.json."""
import torch
from common import numbers, write
from torch.nn import functional as F

DTYPES = {"f32": torch.float32, "f64": torch.float64}

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
