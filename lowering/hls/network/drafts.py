"""Drafts of processes, which refer to each other by ports, before FIFOs and order are determined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .boxes import Box
from .nodes import Buffer, Fifo, Process

if TYPE_CHECKING:
    import numpy as np

    from dcarray.ir.nodes import Compute, Load, Window


@dataclass(eq=False, slots=True)
class Port:
    """The stream that a process sends, for any number of receivers."""

    dtype: np.dtype[Any]
    box: Box
    producer: Draft


@dataclass(eq=False, slots=True)
class Draft:
    """A draft of a process.

    ``loose``: it receives elements whenever they come, not at fixed ticks of the raster.  ``scattered``: its
    output is not stored in row-major order.  ``whole`` has processes that are complete already, with their
    ``own`` FIFOs."""

    kind: str
    name: str
    stage: int
    buffer: Buffer | None = None
    window: Window | None = None
    stmt: Compute | None = None
    number: int = 0
    box: Box | None = None
    feeds: list[Port] = field(default_factory=list)
    taps: list[tuple[Load, Port]] = field(default_factory=list)
    held: list[tuple[str, Buffer]] = field(default_factory=list)
    start: Buffer | None = None
    out: Port | None = None
    loose: bool = False
    scattered: bool = False
    tables: tuple[str, ...] = ()
    whole: tuple[Process, ...] = ()
    own: tuple[Fifo, ...] = ()

    @property
    def folds(self) -> bool:
        """Whether the process computes a fold."""
        return self.stmt is not None and self.stmt.combine is not None

    def reads(self) -> list[Buffer]:
        """Return the buffers that the process reads."""
        buffers = [buffer for _, buffer in self.held] + ([self.start] if self.start is not None else [])
        return [*buffers, self.buffer] if self.kind == "read" and self.buffer is not None else buffers

    def inputs(self) -> list[Port]:
        """Return the streams that the process receives, each once."""
        return list(dict.fromkeys([*self.feeds, *(port for _, port in self.taps)]))
