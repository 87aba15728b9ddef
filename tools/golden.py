#!/usr/bin/env python3
"""Makes tests/golden/*.json with PyTorch; tests/golden/README.md says what they hold.

usage: python3 tools/golden.py [--only NAME ...] [FOLDER]        (needs PyTorch; the default folder is tests/golden)

The same version of PyTorch gives the same files. Nothing here reads outrace: the values are PyTorch's alone. Each
family is a module of tools/golden.
"""
import argparse
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))

from elementwise import activation, elementwise
from index import index
from layers import layers
from losses import losses
from optimizers import optimizers
from reduce import reduce
from schedulers import schedulers
from softmax import cross_entropy, softmax
from training import training

FAMILIES = (training, softmax, cross_entropy, elementwise, activation, reduce, index, losses, layers, optimizers,
            schedulers)

if __name__ == "__main__":
    names = [family.__name__ for family in FAMILIES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).parents[1] / "tests/golden")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("PyTorch", torch.__version__)
    for family in FAMILIES:
        if not arguments.only or family.__name__ in arguments.only:
            family(arguments.folder)
