"""Ten steps of every optimizer with each of its main options, in f64: tests/golden/optimizers.json and lbfgs.json."""
import torch
from common import numbers, write

STEPS = 10
SKIPPED = 2  # the step in which b has no gradient


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, program 1; PyTorch has none."""

    def __init__(self, params, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0, maximize=False):
        super().__init__(params, dict(lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = -p.grad if group["maximize"] else p.grad
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                direction = torch.sign(group["beta1"] * m + (1 - group["beta1"]) * g)
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * direction)
                m.mul_(group["beta2"]).add_((1 - group["beta2"]) * g)


O = torch.optim
DECAY, MAXIMIZE = {"weight_decay": 0.1}, {"maximize": True}
CASES = {
    "sgd": (O.SGD, {"lr": 0.1}),
    "sgd_decay": (O.SGD, {"lr": 0.1, "maximize": True} | DECAY),
    "sgd_momentum": (O.SGD, {"lr": 0.1, "momentum": 0.9}),
    "sgd_dampening": (O.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3} | DECAY),
    "sgd_nesterov": (O.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (O.Adam, {"lr": 0.05}),
    "adam_decay": (O.Adam, {"lr": 0.05} | DECAY | MAXIMIZE),
    "adam_amsgrad": (O.Adam, {"lr": 0.05, "betas": (0.8, 0.7), "eps": 1e-3, "amsgrad": True}),
    "adamw": (O.AdamW, {"lr": 0.05} | DECAY | MAXIMIZE),
    "adamw_amsgrad": (O.AdamW, {"lr": 0.05, "betas": (0.8, 0.7), "amsgrad": True}),
    "rmsprop": (O.RMSprop, {"lr": 0.05}),
    "rmsprop_decay": (O.RMSprop, {"lr": 0.05, "alpha": 0.9} | DECAY | MAXIMIZE),
    "rmsprop_centered": (O.RMSprop, {"lr": 0.05, "eps": 1e-3, "centered": True}),
    "rmsprop_momentum": (O.RMSprop, {"lr": 0.05, "momentum": 0.8}),
    "rmsprop_all": (O.RMSprop, {"lr": 0.05, "momentum": 0.8, "centered": True} | DECAY),
    "adagrad": (O.Adagrad, {"lr": 0.1}),
    "adagrad_all": (O.Adagrad, {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5} | DECAY | MAXIMIZE),
    "adadelta": (O.Adadelta, {}),
    "adadelta_all": (O.Adadelta, {"lr": 0.5, "rho": 0.8, "eps": 1e-4} | DECAY | MAXIMIZE),
    "nadam": (O.NAdam, {"lr": 0.05}),
    "nadam_decay": (O.NAdam, {"lr": 0.05, "momentum_decay": 0.1} | DECAY | MAXIMIZE),
    "nadam_decoupled": (O.NAdam, {"lr": 0.05, "decoupled_weight_decay": True} | DECAY),
    "radam": (O.RAdam, {"lr": 0.05}),
    "radam_decay": (O.RAdam, {"lr": 0.05, "betas": (0.8, 0.9)} | DECAY | MAXIMIZE),
    "radam_decoupled": (O.RAdam, {"lr": 0.05, "decoupled_weight_decay": True} | DECAY),
    "adamax": (O.Adamax, {"lr": 0.05}),
    "adamax_decay": (O.Adamax, {"lr": 0.05, "betas": (0.8, 0.7)} | DECAY | MAXIMIZE),
    "lion": (Lion, {"lr": 0.05}),
    "lion_decay": (Lion, {"lr": 0.05, "beta2": 0.8} | DECAY | MAXIMIZE),
}
LBFGS_CASES = {
    "plain": {"lr": 0.5, "max_iter": 3},
    "history": {"lr": 0.4, "max_iter": 2, "history_size": 2},
    "strong_wolfe": {"lr": 1, "max_iter": 1, "line_search_fn": "strong_wolfe"},
    "strong_wolfe_long": {"lr": 8, "max_iter": 2, "max_eval": 20, "line_search_fn": "strong_wolfe"},
}


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64).round(decimals=2)


def optimizers(folder):
    torch.manual_seed(8)
    torch.set_default_dtype(torch.float64)  # NAdam keeps its product of momenta in the default type
    start = {"a": draw(2, 2), "b": draw(2)}
    gradients = {"a": draw(STEPS, 2, 2), "b": draw(STEPS, 2)}
    groups = {"start": {k: numbers(v) for k, v in start.items()}}
    groups["gradients"] = {k: numbers(v) for k, v in gradients.items()}
    for name, (optimizer_type, options) in CASES.items():
        parameters = {k: v.clone().requires_grad_() for k, v in start.items()}
        optimizer = optimizer_type(parameters.values(), **options)
        seen = {k: [] for k in start}
        for step in range(STEPS):
            for key, p in parameters.items():
                p.grad = None if (key, step) == ("b", SKIPPED) else gradients[key][step].clone()
            optimizer.step()
            for key, p in parameters.items():
                seen[key].append(p.detach().clone())
        groups[name] = {k: numbers(torch.stack(v)) for k, v in seen.items()}
    write(folder, "optimizers", groups)
    lbfgs(folder)
    torch.set_default_dtype(torch.float32)


def lbfgs(folder):
    """loss = sum((x a + b - y)^2) / 4 + sum(a^4) / 10"""
    torch.manual_seed(9)
    x, y, start = draw(4, 2), draw(4, 2), {"a": draw(2, 2), "b": draw(2)}
    groups = {"x": numbers(x), "y": numbers(y), "start": {k: numbers(v) for k, v in start.items()}}
    for name, options in LBFGS_CASES.items():
        a, b = (v.clone().requires_grad_() for v in start.values())
        optimizer = torch.optim.LBFGS([a, b], **options)

        def closure():
            optimizer.zero_grad()
            loss = ((x @ a + b - y) ** 2).sum() / 4 + (a**4).sum() / 10
            loss.backward()
            return loss

        seen = {"loss": [], "a": [], "b": []}
        for _ in range(STEPS):
            seen["loss"].append(optimizer.step(closure).detach())
            seen["a"].append(a.detach().clone())
            seen["b"].append(b.detach().clone())
        evaluations = optimizer.state[a]["func_evals"]
        print(f"lbfgs {name}: loss {seen['loss'][0]:.3f} -> {seen['loss'][-1]:.6f}, {evaluations} evaluations")
        groups[name] = {k: numbers(torch.stack(v)) for k, v in seen.items()} | {"evaluations": evaluations}
    write(folder, "lbfgs", groups)
