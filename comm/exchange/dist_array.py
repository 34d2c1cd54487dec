"""The class of distributed arrays on one rank: the layout and this rank's block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout
from dcarray.comm.transport.protocol import Array, Communicator

from .redistribute import redistribute

__all__ = ["DistArray"]


@dataclass(frozen=True, eq=False)
class DistArray:
    """One rank's view of a distributed array.

    Parameters
    ----------
    comm : Communicator
        The ranks; each of them holds a block.
    layout : Layout
        The distribution of the elements.
    block : ndarray
        This rank's memory, including halo, of the shape ``layout.local_shape(comm.rank)``.
    """

    comm: Communicator
    layout: Layout
    block: Array

    @classmethod
    def from_whole(cls, whole: Any, layout: Layout, comm: Communicator) -> DistArray:
        """Return the array `whole`, which every rank has, distributed in a layout; nothing is sent."""
        given = np.asarray(whole)
        block = np.zeros(layout.local_shape(comm.rank), given.dtype)
        copies = Layout.copies(layout.shape, layout.grid)
        redistribute(copies, layout, comm.rank).run(comm, given, block)
        return cls(comm, layout, block)

    @classmethod
    def replicated(cls, whole: Any, comm: Communicator) -> DistArray:
        """Return the array `whole`, which every rank has, as a replicated one."""
        given = np.asarray(whole)
        return cls(comm, Layout.copies(given.shape, ProcessGrid((comm.size,))), given)

    @property
    def shape(self) -> tuple[int, ...]:
        """The whole array's shape."""
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return self.layout.ndim

    @property
    def size(self) -> int:
        """The whole array's number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.block.dtype

    @property
    def local(self) -> Array:
        """A view of this rank's own elements, without halo."""
        owned: tuple[Any, ...] = self.layout.owned(self.comm.rank)
        return self.block[(*owned, ...)]

    def map(self, function: Callable[[Array], Any]) -> DistArray:
        """Return the results of an element-wise function, in the same layout, but without halo."""
        return DistArray(self.comm, self.layout.without_halo(), np.asarray(function(self.local)))

    def redistribute(self, layout: Layout) -> DistArray:
        """Return the array in another layout, without halos; itself if the layout is the same."""
        if layout == self.layout:
            return self
        block = np.zeros(layout.local_shape(self.comm.rank), self.dtype)
        redistribute(self.layout, layout, self.comm.rank).run(self.comm, self.block, block)
        return DistArray(self.comm, layout, block)

    def gather(self) -> Array:
        """Return all elements, on every rank."""
        return self.redistribute(Layout.copies(self.shape, self.layout.grid)).block

    def flat_rows(self) -> tuple[DistArray, Layout]:
        """Return the array cut along its first axis only, and the layout of its elements on one axis in C
        order."""
        laid = self.redistribute(row_layout(self.shape, self.comm.size))
        each = math.prod(self.shape[1:])
        first = laid.layout.parts[0] if self.ndim else None
        ranks = self.comm.size
        sizes = tuple((first.size(part) if first else int(part == 0)) * each for part in range(ranks))
        return laid, Layout((sum(sizes),), ProcessGrid((ranks,)), [Block(0, sizes)])

    def ravel(self) -> DistArray:
        """Return the elements in C order, on one axis; few ranks own some if the first axis is short."""
        laid, flat = self.flat_rows()
        here = laid.local.reshape(-1)
        return DistArray(self.comm, flat, here if self.ndim or not self.comm.rank else here[:0])

    def reshape(self, shape: Sequence[int]) -> DistArray:
        """Return the same elements in C order in another shape, cut along its first axis."""
        flat, goal = self.ravel(), row_layout(shape, self.comm.size)
        if not goal.ndim:
            return DistArray(self.comm, goal, flat.gather().reshape(()))
        each = math.prod(goal.shape[1:])
        sizes = tuple(goal.parts[0].size(part) * each for part in range(self.comm.size))
        there = flat.redistribute(Layout(flat.shape, flat.layout.grid, [Block(0, sizes)]))
        return DistArray(self.comm, goal, there.block.reshape(goal.local_shape(self.comm.rank)))
