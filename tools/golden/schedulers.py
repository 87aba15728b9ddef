"""Learning rates of every scheduler over 24 epochs for two groups: tests/golden/schedulers.json."""
import warnings

import torch

from common import write

EPOCHS = 24
BASE = [0.05, 1.0]
S = torch.optim.lr_scheduler
CASES = {
    "step": lambda o: S.StepLR(o, step_size=5, gamma=0.3),
    "multi_step": lambda o: S.MultiStepLR(o, milestones=[3, 8, 8, 15], gamma=0.5),
    "exponential": lambda o: S.ExponentialLR(o, gamma=0.9),
    "constant": lambda o: S.ConstantLR(o, factor=0.25, total_iters=6),
    "linear": lambda o: S.LinearLR(o, start_factor=0.2, end_factor=0.8, total_iters=7),
    "polynomial": lambda o: S.PolynomialLR(o, total_iters=10, power=1.7),
    "cosine": lambda o: S.CosineAnnealingLR(o, T_max=9, eta_min=0.01),
    "warm_restarts": lambda o: S.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.01),
    "warm_restarts_equal": lambda o: S.CosineAnnealingWarmRestarts(o, T_0=5),
    "lambda": lambda o: S.LambdaLR(o, [lambda t: 1 / (1 + t), lambda t: 0.5**t]),
    "one_cycle": lambda o: S.OneCycleLR(o, max_lr=[0.5, 2.0], total_steps=EPOCHS),
    "one_cycle_linear": lambda o: S.OneCycleLR(o, max_lr=0.5, total_steps=EPOCHS, anneal_strategy="linear",
                                               three_phase=True, pct_start=0.4, div_factor=10, final_div_factor=50),
    "sequential": lambda o: S.SequentialLR(
        o, [S.LinearLR(o, start_factor=0.25, total_iters=3), S.CosineAnnealingLR(o, T_max=10), S.ExponentialLR(o, 0.7)],
        milestones=[4, 14]),
    "chained": lambda o: S.ChainedScheduler([S.ConstantLR(o, factor=0.1, total_iters=4), S.ExponentialLR(o, 0.9)]),
}
METRICS = [1.0, 0.8, 0.8, 0.79999, 0.81, 0.7, 0.71, 0.72, 0.73, 0.74, 0.75, 0.69,
           0.7, 0.7, 0.7, 0.7, 0.6, 0.61, 0.61, 0.61]
PLATEAU_CASES = {
    "plain": dict(factor=0.5, patience=2),
    "max_abs": dict(mode="max", factor=0.5, patience=1, threshold=0.02, threshold_mode="abs"),
    "cooldown": dict(factor=0.1, patience=1, cooldown=2, min_lr=[0.001, 0.2], threshold=0.05),
}


def two_groups():
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in BASE]
    return torch.optim.SGD([{"params": [p], "lr": lr} for p, lr in zip(parameters, BASE)], momentum=0.9)


def rates(optimizer, key="lr"):
    return [group[key] for group in optimizer.param_groups]


def schedulers(folder):
    warnings.simplefilter("ignore")  # steps without the optimizer's
    groups = {"base": BASE}
    for name, make in CASES.items():
        optimizer = two_groups()
        scheduler = make(optimizer)
        seen, momenta = [], []
        for epoch in range(EPOCHS):
            seen.append(rates(optimizer))
            momenta.append(optimizer.param_groups[0]["momentum"])
            if epoch + 1 < EPOCHS:
                scheduler.step()
        groups[name] = {"lr": seen} | ({"momentum": momenta} if name.startswith("one_cycle") else {})
    groups["metrics"] = METRICS
    for name, options in PLATEAU_CASES.items():
        optimizer = two_groups()
        scheduler = S.ReduceLROnPlateau(optimizer, **options)
        seen = []
        for metric in METRICS:
            scheduler.step(metric)
            seen.append(rates(optimizer))
        groups[f"plateau_{name}"] = {"lr": seen}
    write(folder, "schedulers", groups)
