"""Line buffers of stencils: registers for the elements that are read, and delays in block memory between
them.

Their text is written by `dcarray.lowering.hls.kernels.statements`.
"""

from __future__ import annotations

from dcarray.ir.records import record

from .nodes import LineBuffer, Work

#: What lies between two taps is a delay in block memory if it has so many places; else it is registers.
SHORTEST_DELAY = 128


@record(frozen=True, slots=True)
class Parts:
    """The parts of a shift register: ``runs`` has the first and last place of each run of registers, counted
    from the oldest element.  Between two runs there is a delay in block memory."""

    runs: tuple[tuple[int, int], ...]

    @property
    def registers(self) -> int:
        """The number of registers."""
        return sum(last - first + 1 for first, last in self.runs)

    @property
    def delays(self) -> tuple[int, ...]:
        """The length of each delay, in elements."""
        return tuple(b[0] - a[1] - 1 for a, b in zip(self.runs, self.runs[1:], strict=False))

    def register(self, place: int) -> int:
        """Return the number of the register at a place; raise ValueError if the place is in a delay."""
        before = 0
        for first, last in self.runs:
            if first <= place <= last:
                return before + place - first
            before += last - first + 1
        raise ValueError(f"place {place} is in a delay")


def parts(work: Work, line: LineBuffer, shortest: int | None = SHORTEST_DELAY) -> Parts:
    """Return the parts of a line buffer; delays are at least ``shortest`` (None: none)."""
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
