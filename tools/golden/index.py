"""Ops that choose, join and move elements, and their gradients: tests/golden/index.json.

Each case: inputs, output y, upstream gradient g, gradients d<input>.
"""
import torch
from common import numbers, with_gradients, write
from torch.nn import functional as F


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64).round(decimals=2)


def whole(high, *shape):
    return torch.randint(0, high, shape)


def gathered():
    x, source = normal(4, 5), normal(3, 4)
    index = whole(4, 3, 4)
    columns = torch.stack([torch.randperm(5)[:3] for _ in range(4)])  # no place twice: there PyTorch's result is open
    rows = torch.tensor([2, 0, 2, 3, 2])
    table = normal(6, 3)
    words = torch.tensor([[5, 1, 1], [0, 5, 2]])
    offsets = torch.tensor([0, 2, 2, 5])
    bag = torch.tensor([0, 3, 3, 5, 1, 2])
    cases = {
        "gather": with_gradients(lambda x, index: torch.gather(x, 0, index), 1, x=x, index=index),
        "scatter": with_gradients(lambda x, z, index: x.scatter(1, index, z), 2, x=x, z=normal(4, 3), index=columns),
        "scatter_add": with_gradients(lambda x, z, index: x.scatter_add(0, index, z), 3, x=x, z=source, index=index),
        "index_select": with_gradients(lambda x, index: torch.index_select(x, 0, index), 4, x=x, index=rows),
        "index_add": with_gradients(lambda x, z, index: x.index_add(0, index, z), 5, x=x, z=normal(5, 5), index=rows),
        "take": with_gradients(lambda x, index: torch.take(x, index), 6, x=x, index=whole(20, 2, 3)),
        "embedding": with_gradients(lambda x, index: F.embedding(index, x, padding_idx=1), 7, x=table, index=words),
        "masked_select": with_gradients(lambda x, mask: torch.masked_select(x, mask > 0), 8, x=x, mask=whole(2, 4, 5)),
        "masked_fill": with_gradients(lambda x, mask: x.masked_fill(mask > 0, 0.5), 9, x=x, mask=whole(2, 5)),
    }
    for mode in ("sum", "mean", "max"):
        cases[f"embedding_bag_{mode}"] = with_gradients(
            lambda x, index, offsets: F.embedding_bag(index, x, offsets, mode=mode), 10,
            x=table, index=bag, offsets=offsets)
    return cases


def moved():
    x, z, image = normal(3, 4), normal(3, 2), normal(1, 2, 4, 5)
    cases = {
        "cat": with_gradients(lambda x, z: torch.cat([x, z, x], 1), 1, x=x, z=z),
        "stack": with_gradients(lambda x, z: torch.stack([x, z, x], -1), 2, x=x, z=normal(3, 4)),
        "roll": with_gradients(lambda x: torch.roll(x, (1, -2), (0, 1)), 3, x=x),
        "flip": with_gradients(lambda x: torch.flip(x, (0, 1)), 4, x=x),
        "repeat": with_gradients(lambda x: x.repeat(2, 1, 3), 5, x=x),
        "repeat_interleave": with_gradients(lambda x: torch.repeat_interleave(x, 3, 1), 6, x=x),
        "unfold": with_gradients(lambda x: x.unfold(2, 3, 2), 7, x=image),
        "diagonal": with_gradients(lambda x: torch.diagonal(x, 1, 3, 2), 8, x=image),
        "diag_embed": with_gradients(lambda x: torch.diag_embed(x, -1, 0, 2), 9, x=x),
        "tril": with_gradients(lambda x: torch.tril(x, -1), 10, x=x),
        "triu": with_gradients(lambda x: torch.triu(x, 1), 11, x=x),
        "movedim": with_gradients(lambda x: torch.movedim(x, 1, 3), 12, x=image),
        "pad_constant": with_gradients(lambda x: F.pad(x, (1, -2, 2, 0), value=0.5), 13, x=x),
    }
    for mode in ("reflect", "replicate", "circular"):
        cases[f"pad_{mode}"] = with_gradients(lambda x: F.pad(x, (2, 1, 3, 0), mode=mode), 14, x=image)
    return cases


def contracted():
    equations = {
        "ij,jk->ik": ((3, 4), (4, 2)),
        "bij,bkj->bik": ((2, 3, 4), (2, 2, 4)),
        "ii->i": ((3, 3),),
        "ij,j,jk": ((3, 4), (4,), (4, 2)),
        "...ij,jk->...ki": ((2, 3, 4), (4, 2)),
        "iji->j": ((3, 2, 3),),
    }
    cases = {}
    for equation, shapes in equations.items():
        named = {name: normal(*shape) for name, shape in zip("xzw", shapes)}
        cases[equation] = with_gradients(lambda **inputs: torch.einsum(equation, *inputs.values()), 15, **named)
    cases["matmul_vectors"] = with_gradients(lambda x, z: torch.matmul(x, z), 16, x=normal(4), z=normal(2, 4, 3))
    cases["tensordot"] = with_gradients(lambda x, z: torch.tensordot(x, z, ([2, 0], [0, 1])), 17,
                                        x=normal(2, 3, 4), z=normal(4, 2, 3))
    cases["kron"] = with_gradients(lambda x, z: torch.kron(x, z), 18, x=normal(2, 3), z=normal(2, 2))
    return cases


def created():
    ij, xy = (torch.meshgrid(torch.arange(2), torch.arange(3), indexing=i) for i in ("ij", "xy"))
    return {
        "linspace": numbers(torch.linspace(-1, 3, 7, dtype=torch.float64)),
        "arange": numbers(torch.arange(1, 2.3, 0.3, dtype=torch.float64)),
        "eye": numbers(torch.eye(2, 3, dtype=torch.float64)),
        "one_hot": numbers(F.one_hot(torch.tensor([2, 0]), 4)),
        "nonzero": numbers(torch.nonzero(torch.tensor([[0, 1], [2, 0]]))),
        "meshgrid_ij": numbers(torch.stack(ij)),
        "meshgrid_xy": numbers(torch.stack(xy)),
    }


def index(folder):
    torch.manual_seed(8)
    groups = {"gathered": gathered(), "moved": moved(), "contracted": contracted(), "created": created()}
    write(folder, "index", groups)
