"""Golden values of the elementwise ops and of the activations composed from them."""
import torch
from torch.nn import functional as F

from common import numbers, with_gradients, write


def of(*values):
    return torch.tensor(values, dtype=torch.float64)


def grid(low, high):
    return torch.linspace(low, high, 13, dtype=torch.float64)


TIES = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
# Where rounding, overflow or a pole decides.
SPECIAL = [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 5e-324, 1e-310, 1e-20, 1e20, 1.5e308, -1.5e308]
SPECIAL += [709.0, 710.0, -745.0, -746.0, 20.0, -40.0]
# Left out, as the truth is another: PyTorch's sign gives 0 for NaN and for -0, its sinh and cosh overflow before their
# result does.
OMIT = {"sign": ("nan", "-0.0"), "sinh": ("710.0",), "cosh": ("710.0",)}
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
    "exp2": (torch.exp2, -30, 30),
    "log2": (torch.log2, 0.01, 40),
    "log1p": (torch.log1p, -0.9, 40),
    "expm1": (torch.expm1, -30, 30),
    "floor": (torch.floor, -3, 3),
    "ceil": (torch.ceil, -3, 3),
    "round": (torch.round, -3, 3),
    "trunc": (torch.trunc, -3, 3),
    "sin": (torch.sin, -30, 30),
    "cos": (torch.cos, -30, 30),
    "tan": (torch.tan, -30, 30),
    "asin": (torch.asin, -0.99, 0.99),
    "acos": (torch.acos, -0.99, 0.99),
    "atan": (torch.atan, -6, 6),
    "sinh": (torch.sinh, -6, 6),
    "cosh": (torch.cosh, -6, 6),
    "erf": (torch.erf, -3, 3),
    "erfc": (torch.erfc, -3, 6),
    "gelu": (F.gelu, -6, 6),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), -6, 6),
    "silu": (F.silu, -12, 12),
    "softplus": (lambda x: F.softplus(x, threshold=700), -36, 36),
    "mish": (F.mish, -12, 12),
    "log_sigmoid": (F.logsigmoid, -36, 36),
    "selu": (F.selu, -6, 6),
    "hard_sigmoid": (F.hardsigmoid, -6, 6),
    "hard_swish": (F.hardswish, -6, 6),
    "softsign": (F.softsign, -6, 6),
    "relu6": (F.relu6, -9, 9),
}
LINE_X, LINE_Z = torch.cat([grid(-3, 3), TIES]), torch.cat([grid(2.5, 0.5), TIES])


POWER_X = torch.cat([grid(0.25, 3.25), of(0, 0, 0, -2, -2, -1.5, -3, -1, 1)])
POWER_Z = torch.cat([grid(-2, 4), of(0, 2, 0.5, 3, -3, 2, 0, 4, 5)])
BINARY = {  # function of PyTorch, inputs; no 0 / 0
    "add": (torch.add, LINE_X, LINE_Z),
    "sub": (torch.sub, LINE_X, LINE_Z),
    "mul": (torch.mul, LINE_X, LINE_Z),
    "div": (torch.div, LINE_X[:13], LINE_Z[:13]),
    "maximum": (torch.maximum, LINE_X, LINE_Z),
    "minimum": (torch.minimum, LINE_X, LINE_Z),
    "fmod": (torch.fmod, LINE_X[:13] * 3, LINE_Z[:13]),
    "pow": (torch.pow, POWER_X, POWER_Z),
    "atan2": (torch.atan2, LINE_X, LINE_Z - 1.75),
    "xlogy": (torch.xlogy, torch.cat([LINE_X[:13], of(0, 0, 0, 2)]), torch.cat([LINE_Z[:13], of(0, -1, 3, 0.5)])),
    "copysign": (torch.copysign, LINE_X, LINE_Z - 1.75),
}
# Where exponents, bases, quotients or signs are special: all pairs.
EXTREMES = of(0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, torch.inf, -torch.inf, torch.nan, 5e-324, 1e300, -1e300)
COMPARE = {
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
}
ACTIVATIONS = {  # the grid holds the kinks
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.5),
    "celu": lambda x: F.celu(x, 0.5),
    "softplus": lambda x: F.softplus(x, beta=2, threshold=3),
    "hardtanh": lambda x: F.hardtanh(x, -1, 2),
    "clamp": lambda x: torch.clamp(x, -1, 1.5),
    "clamp_low": lambda x: torch.clamp(x, min=-1),
    "clamp_high": lambda x: torch.clamp(x, max=1.5),
    "clamp_crossed": lambda x: torch.clamp(x, 1, -1),
    "clamp_nan": lambda x: torch.clamp(x, min=torch.nan),
    "threshold": lambda x: F.threshold(x, 0.5, -2),
    "softshrink": lambda x: F.softshrink(x, 0.5),
    "hardshrink": lambda x: F.hardshrink(x, 0.5),
    "tanhshrink": F.tanhshrink,
}


def elementwise(folder):
    groups = {"unary": {}, "binary": {}, "compare": {}}
    for name, (function, low, high) in UNARY.items():
        case = with_gradients(lambda x: function(x), 6, x=grid(low, high))
        special = of(*(v for v in SPECIAL if str(v) not in OMIT.get(name, ())))
        case["special"] = {"x": numbers(special), "y": numbers(function(special))}
        groups["unary"][name] = case
    x, z = (v.flatten() for v in torch.meshgrid(EXTREMES, EXTREMES, indexing="ij"))
    for name, (function, *inputs) in BINARY.items():
        case = with_gradients(lambda x, z: function(x, z), 7, x=inputs[0], z=inputs[1])
        keep = z != 5e-324 if name == "fmod" else slice(None)  # PyTorch's quotient overflows; the remainder is 0
        case["special"] = {"x": numbers(x[keep]), "z": numbers(z[keep]), "y": numbers(function(x, z)[keep])}
        groups["binary"][name] = case
    for name, function in COMPARE.items():
        groups["compare"][name] = {"x": numbers(x), "z": numbers(z), "y": numbers(function(x, z).double())}
    write(folder, "elementwise", groups)


def activation(folder):
    x = grid(-3, 3)
    groups = {name: with_gradients(lambda x: function(x), 8, x=x) for name, function in ACTIVATIONS.items()}
    special = of(torch.inf, -torch.inf, torch.nan, 800, -800)
    for name, function in ACTIVATIONS.items():
        groups[name]["special"] = {"x": numbers(special), "y": numbers(function(special))}
    torch.manual_seed(9)
    image = torch.randn(2, 4, 3, dtype=torch.float64).round(decimals=2)
    groups["prelu"] = with_gradients(lambda x, weight: F.prelu(x, weight), 10, x=image, weight=of(0.25, -0.5, 0, 1.5))
    groups["prelu_one"] = with_gradients(lambda x, weight: F.prelu(x, weight), 10, x=image, weight=of(0.25))
    groups["glu"] = with_gradients(lambda x: F.glu(x, 1), 10, x=image)
    row = of(-1, 0.5, 1)
    groups["clamp_tensors"] = with_gradients(lambda x, low, high: torch.clamp(x, low, high), 10, x=image, low=row - 0.5,
                                             high=row + 0.25)
    groups["lerp"] = with_gradients(lambda x, z: torch.lerp(x, z, 0.3), 10, x=image, z=image.flip(0))
    groups["lerp_far"] = with_gradients(lambda x, z: torch.lerp(x, z, 0.8), 10, x=image, z=image.flip(0))
    groups["lerp_tensor"] = with_gradients(lambda x, z, weight: torch.lerp(x, z, weight), 10, x=image,
                                           z=image.flip(0), weight=row)
    write(folder, "activation", groups)
