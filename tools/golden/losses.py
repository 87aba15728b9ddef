"""Losses with their options and reductions: tests/golden/losses.json."""
import torch
from common import numbers, with_gradients, write
from torch.nn import functional as F


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64).round(decimals=2)


def shares(*shape):
    return torch.rand(*shape, dtype=torch.float64).mul(0.96).add(0.02).round(decimals=3)


def losses(folder):
    torch.manual_seed(5)
    x, z = normal(4, 3), normal(4, 3)
    p, q = shares(4, 3), shares(4, 3)
    hard = (q > 0.5).double()
    distribution, other = torch.softmax(x, -1), torch.softmax(z, -1).round(decimals=4)
    weight, pos_weight = shares(3), torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    with_zero = other.clone()
    with_zero[0, 0] = 0
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    images, labels = normal(2, 3, 2, 2), torch.tensor([[[0, 2], [1, 1]], [[2, -100], [0, 1]]])
    classes = torch.tensor([2, 0, -100, 1])
    pairs = {  # name: inputs, variants (options beside the reduction)
        "mse_loss": (dict(x=x, z=z), {"": {}}),
        "l1_loss": (dict(x=x, z=z), {"": {}}),
        "huber_loss": (dict(x=x, z=z), {"": {}, "delta": {"delta": 0.3}}),
        "smooth_l1_loss": (dict(x=x, z=z), {"": {}, "beta": {"beta": 0.3}, "beta_0": {"beta": 0.0}}),
        "binary_cross_entropy": (dict(x=p, z=q), {"": {}, "weight": {"weight": weight}}),
        "binary_cross_entropy_with_logits": (
            dict(x=x, z=hard), {"": {}, "weight": {"weight": weight}, "pos_weight": {"pos_weight": pos_weight}}),
        "kl_div": (dict(x=distribution.log(), z=with_zero), {"": {}}),
        "kl_div_log": (dict(x=distribution.log(), z=other.log()), {"": {"log_target": True}}),
        "nll_loss": (dict(x=distribution.log(), z=classes), {"": {}, "weight": {"weight": weight}}),
        "cross_entropy_images": (
            dict(x=images, z=labels), {"": {}, "weight": {"weight": weight, "label_smoothing": 0.1}}),
    }
    groups = {"weight_values": numbers(weight), "pos_weight_values": numbers(pos_weight)}
    for name, (inputs, variants) in pairs.items():
        function = {"kl_div_log": F.kl_div, "cross_entropy_images": F.cross_entropy}.get(name) or getattr(F, name)
        reductions = ["none", "mean", "sum"] + (["batchmean"] if name.startswith("kl_div") else [])
        for variant, options in variants.items():
            for reduction in reductions:
                case = with_gradients(lambda x, z: function(x, z, reduction=reduction, **options), 6, **inputs)
                groups.setdefault(name, {}).setdefault(variant or "plain", {})[reduction] = case
    triples = {
        "cosine_embedding_loss": (F.cosine_embedding_loss, dict(x=x, z=z, w=sign), {"": {}, "margin": {"margin": 0.2}}),
        "triplet_margin_loss": (F.triplet_margin_loss, dict(x=x, z=z, w=normal(4, 3)),
                                {"": {}, "p1": {"p": 1.0, "margin": 0.5}, "swap": {"swap": True}}),
    }
    for name, (function, inputs, variants) in triples.items():
        for variant, options in variants.items():
            for reduction in ("none", "mean", "sum"):
                case = with_gradients(lambda x, z, w: function(x, z, w, reduction=reduction, **options), 7, **inputs)
                groups.setdefault(name, {}).setdefault(variant or "plain", {})[reduction] = case
    write(folder, "losses", groups)
