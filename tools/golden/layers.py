"""Layers: output, gradients of input and parameters, state after a step of training: tests/golden/layers.json."""
import torch
from common import numbers, write


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64).round(decimals=2)


def case_of(layer, *inputs):
    """Parameters and inputs are made to have few digits; the upstream gradient as well."""
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(normal(*p.shape))
    case = {"state": {k: numbers(v) for k, v in layer.state_dict().items()}}
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = layer(*leaves)
    g = normal(*y.shape)
    y.backward(g)
    case |= {f"x{i}": numbers(x) for i, x in enumerate(inputs)}
    case |= {"y": numbers(y), "g": numbers(g)}
    case |= {f"dx{i}": numbers(x.grad) for i, x in enumerate(leaves) if x.grad is not None}
    case["gradients"] = {k: numbers(p.grad) for k, p in layer.named_parameters()}
    case["after"] = {k: numbers(v) for k, v in layer.named_buffers()}
    if case["after"]:
        layer.eval()
        case["evaluated"] = numbers(layer(*inputs))
    return case


def layers(folder):
    torch.manual_seed(6)
    nn, f64 = torch.nn, {"dtype": torch.float64}
    cases = {
        "linear": case_of(nn.Linear(4, 3, **f64), normal(2, 5, 4)),
        "linear_without_bias": case_of(nn.Linear(4, 3, bias=False, **f64), normal(5, 4)),
        "bilinear": case_of(nn.Bilinear(4, 3, 2, **f64), normal(5, 4), normal(5, 3)),
        "embedding": case_of(nn.Embedding(6, 3, **f64), torch.tensor([[5, 1, 1], [0, 5, 2]])),
        "embedding_padding": case_of(nn.Embedding(6, 3, padding_idx=-1, **f64), torch.tensor([[5, 1, 1], [0, 5, 2]])),
        "layer_norm": case_of(nn.LayerNorm((3, 4), **f64), normal(2, 3, 4)),
        "layer_norm_without_bias": case_of(nn.LayerNorm(4, bias=False, **f64), normal(2, 3, 4)),
        "layer_norm_plain": case_of(nn.LayerNorm(4, elementwise_affine=False, eps=1e-2, **f64), normal(2, 3, 4)),
        "rms_norm": case_of(nn.RMSNorm(4, eps=1e-6, **f64), normal(2, 3, 4)),
        "group_norm": case_of(nn.GroupNorm(2, 4, **f64), normal(2, 4, 3)),
        "batch_norm": case_of(nn.BatchNorm1d(3, **f64), normal(5, 3)),
        "batch_norm_3d": case_of(nn.BatchNorm1d(3, momentum=0.3, eps=1e-3, **f64), normal(2, 3, 4)),
        "batch_norm_plain": case_of(nn.BatchNorm1d(3, affine=False, **f64), normal(2, 3, 4)),
        "prelu": case_of(nn.PReLU(3, **f64), normal(2, 3, 4)),
        "glu": case_of(nn.GLU(1), normal(2, 4, 3)),
    }
    write(folder, "layers", cases)
