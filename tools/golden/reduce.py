"""Reductions, scans and sorting: tests/golden/reduce.json."""
import torch
from common import numbers, with_gradients, write

INF = torch.inf


def differentiable():
    """Name -> function of x; the tests hold the same names."""
    cases = {}
    for name, function in {"min": torch.amin, "max": torch.amax, "sum": torch.sum, "mean": torch.mean}.items():
        for axes in ((0,), (1,), (0, 2), (0, 1, 2)):
            cases[f"{name}/{''.join(map(str, axes))}"] = lambda x, f=function, a=axes: f(x, dim=a)
    for axis in range(3):
        cases[f"prod/{axis}"] = lambda x, a=axis: torch.prod(x, a)
        cases[f"cumsum/{axis}"] = lambda x, a=axis: torch.cumsum(x, a)
        cases[f"cumprod/{axis}"] = lambda x, a=axis: torch.cumprod(x, a)
        cases[f"cummax/{axis}"] = lambda x, a=axis: torch.cummax(x, a).values
        cases[f"cummin/{axis}"] = lambda x, a=axis: torch.cummin(x, a).values
        cases[f"sort/{axis}"] = lambda x, a=axis: torch.sort(x, a).values
        cases[f"sort_down/{axis}"] = lambda x, a=axis: torch.sort(x, dim=a, descending=True, stable=True).values
        cases[f"topk/{axis}"] = lambda x, a=axis: torch.topk(x, 2, a).values
        cases[f"smallest/{axis}"] = lambda x, a=axis: torch.topk(x, 2, a, largest=False).values
        cases[f"kthvalue/{axis}"] = lambda x, a=axis: torch.kthvalue(x, 2, a).values
        cases[f"median/{axis}"] = lambda x, a=axis: torch.median(x, a).values
        cases[f"max_with_indices/{axis}"] = lambda x, a=axis: torch.max(x, a).values
        cases[f"min_with_indices/{axis}"] = lambda x, a=axis: torch.min(x, a).values
        for q in (0.0, 0.3, 0.5, 1.0):
            cases[f"quantile/{q}/{axis}"] = lambda x, q=q, a=axis: torch.quantile(x, q, a)
    for axes in ((0,), (2,), (0, 2), (0, 1, 2)):
        key = "".join(map(str, axes))
        for correction in (0, 1):
            cases[f"var/{correction}/{key}"] = lambda x, a=axes, c=correction: torch.var(x, a, correction=c)
            cases[f"std/{correction}/{key}"] = lambda x, a=axes, c=correction: torch.std(x, a, correction=c)
        cases[f"logsumexp/{key}"] = lambda x, a=axes: torch.logsumexp(x, a)
        for p in (1.0, 2.0, 3.0, 0.5, -2.0, INF, -INF):
            cases[f"norm/{p}/{key}"] = lambda x, a=axes, p=p: torch.linalg.vector_norm(x, p, a)
    return cases


def positions():
    cases = {}
    for axis in range(3):
        cases[f"argmax/{axis}"] = lambda x, a=axis: torch.argmax(x, a)
        cases[f"argmin/{axis}"] = lambda x, a=axis: torch.argmin(x, a)
        cases[f"argsort/{axis}"] = lambda x, a=axis: torch.argsort(x, dim=a, stable=True)
        cases[f"argsort_down/{axis}"] = lambda x, a=axis: torch.argsort(x, dim=a, descending=True, stable=True)
        cases[f"cummax_at/{axis}"] = lambda x, a=axis: torch.cummax(x, a).indices
    cases["argmax/all"] = torch.argmax
    cases["histogram"] = lambda x: torch.histc(x, 7, -1.5, 1.25).long()
    return cases


def reduce(folder):
    torch.manual_seed(11)
    # Two decimals, no two alike.
    x = (torch.randperm(400)[:24] / 100.0 - 2).double().round(decimals=2).reshape(2, 3, 4)
    special = torch.tensor([[[1, 1, -3, 2], [0, -INF, 5, 5], [torch.nan, 1, 7, torch.nan]],
                            [[INF, INF, 0, -1], [-0.0, 0.0, 0, -0.0], [3, 2, 2, 3]]], dtype=torch.float64)
    groups = {"differentiable": {}, "positions": {}, "special": {}}
    for name, function in differentiable().items():
        case = with_gradients(function, 12, x=x)
        case.pop("x")
        groups["differentiable"][name] = case
    for name, function in positions().items():
        groups["positions"][name] = numbers(function(x))
        if name != "histogram":
            groups["special"][name] = numbers(function(special))
    zeros = torch.tensor([[2.0, 0, 3, 4], [0, 5, 0, 6], [1, 2, 3, 4]], dtype=torch.float64)
    for name, function in {"prod": torch.prod, "cumprod": torch.cumprod}.items():
        groups[f"{name}_of_zeros"] = with_gradients(lambda x, f=function: f(x, 1), 13, x=zeros)
    for name, function in {"cumsum": torch.cumsum, "cumprod": torch.cumprod, "logsumexp": torch.logsumexp}.items():
        groups["special"][name] = numbers(function(special, 2))
    pairs = {"median": torch.median, "sort": torch.sort, "max": torch.max, "cummin": torch.cummin}
    for name, function in pairs.items():
        groups["special"][name] = numbers(function(special, 2)[0])
    groups["special"]["quantile"] = numbers(torch.quantile(special[:, :1], 0.4, 2))
    groups = {"x": numbers(x), "special_x": numbers(special)} | groups
    write(folder, "reduce", groups)
