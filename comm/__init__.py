"""Message passing for NumPy arrays: process grids, layouts, messages, redistribution and halo exchange.

``dcarray.comm`` is for NumPy code that communicates explicitly; see docs/distributed.md.  The global view of
``dcarray.distributed`` is built on it.
"""

if __name__ != "dcarray.comm":
    raise ImportError("this folder is the package 'dcarray.comm': import it by that name")

from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.planning.counting import Counted, count, suited
from dcarray.comm.planning.performance_model import (
    Collective,
    Line,
    Link,
    Machine,
    Phase,
    collective,
    fit,
    predict,
)
from dcarray.comm.transport.errors import (
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
from dcarray.comm.transport.protocol import Communicator, Counts
from dcarray.comm.transport.simulated_ranks import run
from dcarray.comm.transport.world import world

from .cart import Cart, Cart_create, Cart_sub
from .matmul import Einsum, Matmul
from .messages import Allreduce, Alltoall, Bcast, Irecv, Isend, Reduce, Request, Wait, Waitall
from .scatter_gather import BlockGather, BlockScatter, HaloExchange, Redistribute

__all__ = [
    "Allreduce", "Alltoall", "Bcast", "Block", "BlockGather", "BlockScatter", "Cart", "Cart_create",
    "Cart_sub", "Collective", "CommError", "Communicator", "Counted", "Counts", "Cyclic", "DeadlockError",
    "Einsum", "GridError", "HaloExchange", "Irecv", "Isend", "Killed", "Layout", "LayoutError", "Line",
    "Link", "LostRankError", "Machine", "Matmul", "MismatchError", "PerformanceWarning", "Phase",
    "PlanError", "ProcessGrid", "RankError", "Redistribute", "Reduce", "Request", "TileError", "Wait",
    "Waitall", "Whole", "choose_grid", "collective", "count", "fit", "predict", "run", "suited", "world",
]  # fmt: skip
