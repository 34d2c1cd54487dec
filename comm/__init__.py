"""One array over many ranks: grids, layouts, messages, and what one rank sends to another.

``dcarray.comm`` is for NumPy code that says itself what travels; see docs/distributed.md.
"""

if __name__ != "dcarray.comm":
    raise ImportError("this folder is the package 'dcarray.comm': import it by that name")

from .blocks import BlockGather, BlockScatter, HaloExchange, Redistribute
from .carts import Cart, Cart_create, Cart_sub
from .counting import Counted, count, suited
from .errors import (
    CommError,
    DeadlockError,
    GridError,
    Killed,
    LayoutError,
    LostRankError,
    MismatchError,
    PerformanceWarning,
    PlanError,
    RankError,
    TileError,
)
from .grid import ProcessGrid, choose_grid
from .job import world
from .layout import Block, Cyclic, Layout, Whole
from .local import run
from .messages import Allreduce, Alltoall, Bcast, Irecv, Isend, Reduce, Request, Wait, Waitall
from .model import Collective, Line, Link, Machine, Phase, collective, fit, predict
from .products import Einsum, Matmul
from .protocol import Communicator, Counts

__all__ = [
    "Allreduce", "Alltoall", "Bcast", "Block", "BlockGather", "BlockScatter", "Cart", "Cart_create",
    "Cart_sub", "Collective", "CommError", "Communicator", "Counted", "Counts", "Cyclic",
    "DeadlockError", "Einsum", "GridError", "HaloExchange", "Irecv", "Isend", "Killed", "Layout",
    "LayoutError", "Line", "Link", "LostRankError", "Machine", "Matmul", "MismatchError",
    "PerformanceWarning", "Phase", "PlanError", "ProcessGrid", "RankError", "Redistribute", "Reduce",
    "Request", "TileError", "Wait", "Waitall", "Whole", "choose_grid", "collective", "count", "fit",
    "predict", "run", "suited", "world",
]  # fmt: skip
