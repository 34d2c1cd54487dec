"""Line buffers of stencils: registers where elements are tapped, and block memory between them.

Their text is written by `dcarray.lowering.hls.kernels.statements`.
"""

from __future__ import annotations

from dcarray.ir.records import record

from .nodes import LineBuffer, Work

#: What lies between two taps is a delay in block memory if it has so many places; else it is registers.
SHORTEST_DELAY = 128


@record(frozen=True, slots=True)
class Parts:
    """The places of a shift register, counted from the oldest, that are registers: the first and the last
    of each of their ``runs``.  What lies between two runs is a delay."""

    runs: tuple[tuple[int, int], ...]

    @property
    def registers(self) -> int:
        """How many registers there are."""
        return sum(last - first + 1 for first, last in self.runs)

    @property
    def delays(self) -> tuple[int, ...]:
        """The lengths of the delays."""
        return tuple(b[0] - a[1] - 1 for a, b in zip(self.runs, self.runs[1:], strict=False))

    def register(self, place: int) -> int:
        """The number of the register at a place."""
        before = 0
        for first, last in self.runs:
            if first <= place <= last:
                return before + place - first
            before += last - first + 1
        raise ValueError(f"place {place} is in a delay")


def parts(work: Work, line: LineBuffer, shortest: int | None = SHORTEST_DELAY) -> Parts:
    """Return how the line buffer of a statement's input is made; without ``shortest`` of registers only."""
    newest = line.length - 1
    if shortest is None:
        return Parts(((0, newest),))
    used = {newest}
    for tap in work.taps:
        if tap.source == line.source:
            used |= {at - line.tail for at in range(tap.reach(work.width)[0], tap.reach(work.width)[1] + 1)}
    runs: list[list[int]] = []
    for place in sorted(used):
        if runs and place - runs[-1][1] - 1 < shortest:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return Parts(tuple((first, last) for first, last in runs))
