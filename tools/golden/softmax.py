"""Softmax and cross-entropy with its options: tests/golden/softmax.json and cross_entropy.json."""
import torch
from common import numbers, with_gradients, write
from torch.nn import functional as F

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
