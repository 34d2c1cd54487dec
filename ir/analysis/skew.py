"""Skews of statements in time tiles: by how many rows each statement has to run behind those before it.

A *row* is a point of the first axis of a statement's domain.  Its number is the index of the row that it
writes, in the array of the statement's first write.  Row ``y`` of a statement can depend on row ``x`` of an
earlier one only if ``y - x`` is one of a few *distances*, which follow from the windows.

Tile ``c`` begins at some row ``X[c]`` and contains, of each statement, the rows from ``X[c] + ahead`` to
``X[c+1] - behind``.  ``ahead`` is at least that of every earlier statement plus the largest distance, and
``behind`` at least that of every earlier statement minus the smallest distance.  So a row depends on rows of
its own tile only; and the rows between two tiles depend on these tiles and on each other only, as long as
tiles have ``ahead + behind`` rows.  In a tile, rows run in order of ``row + behind``, so none runs too early.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from dcarray.ir.dims import prove_eq, simplify
from dcarray.ir.nodes import Compute, Dim, Part, Region, TimeTiles, Window
from dcarray.ir.records import record

from .effects import Reason, clash, domain, families, reads, writes


@record(frozen=True, slots=True)
class Skew:
    """The rows of a statement, ``count`` from ``first`` on, and its ``ahead`` and ``behind``: by how many
    rows its part of a tile begins after the tile's first row, and ends before the next tile's."""

    first: Dim
    count: Dim
    ahead: int
    behind: int


#: An access of a statement: the number of a window, its first row relative to the statement's, and whether
#: it is a write.
_Use = tuple[int, int, bool]


class SkewAnalysis:
    """The skews of a chain of statements, each computed from the distances of its dependences on earlier
    ones.

    ``root`` maps each array to its memory family, ``written`` has the families that some statement writes,
    and ``meet`` says whether two windows may share memory, like ``effects.clash``.
    """

    def __init__(
        self, root: Mapping[str, str], written: Collection[str], meet: Callable[[Window, Window], bool | None]
    ) -> None:
        self.root, self.written, self.meet = root, frozenset(written), meet
        self.skews: list[Skew] = []
        self._uses: list[tuple[_Use, ...]] = []
        self._numbers: dict[Window, int] = {}
        self._windows: list[Window] = []
        # statements of an unrolled loop are equal
        self._spans: dict[tuple[tuple[_Use, ...], tuple[_Use, ...]], tuple[int, int] | Reason | None] = {}

    def add(self, part: Part) -> Reason | None:
        """Append a statement to the chain; return why that is impossible, else None."""
        target = writes(part)[0]
        first = target.index[0].offset if target.index else 0
        uses = self._accesses(part, first)
        if isinstance(uses, Reason):
            return uses
        ahead = behind = 0
        for earlier, skew in zip(self._uses, self.skews, strict=True):
            key = earlier, uses
            if key not in self._spans:
                self._spans[key] = self._span(earlier, uses)
            span = self._spans[key]
            if isinstance(span, Reason):
                return span
            if span is not None:
                ahead, behind = max(ahead, skew.ahead + span[1]), max(behind, skew.behind - span[0])
        self.skews.append(Skew(first, domain(part)[0], ahead, behind))
        self._uses.append(uses)
        return None

    def _accesses(self, part: Part, first: Dim) -> tuple[_Use, ...] | Reason:
        """Return a statement's accesses to memory that the chain writes, or why it does not run row by
        row."""
        computes = (part,) if isinstance(part, Compute) else part.body
        folds = next((c.target for c in computes if c.combine is not None), None)
        if folds is not None:
            return Reason(f"{folds.array} is the result of a fold", (folds,))
        uses: dict[_Use, None] = {}
        for some, writing in ((writes(part), True), (reads(part), False)):
            for window in some:
                if self.root[window.array] not in self.written:
                    continue
                head = window.index[0] if window.index else None
                if head is None or head.axis != 0 or prove_eq(head.stride, 1) is not True:
                    return Reason(f"{window.array} is not used row by row", (window,))
                relative = simplify(head.offset - first)
                if type(relative) is not int:
                    return Reason(f"it is not known which rows of {window.array} belong together", (window,))
                uses[self._number(window), relative, writing] = None
        return tuple(uses)

    def _number(self, window: Window) -> int:
        number = self._numbers.setdefault(window, len(self._windows))
        if number == len(self._windows):
            self._windows.append(window)
        return number

    def _span(self, earlier: tuple[_Use, ...], later: tuple[_Use, ...]) -> tuple[int, int] | Reason | None:
        """Return the smallest and largest dependence distance of two statements, in rows; None if they are
        independent."""
        distances = []
        for one, v_row, v_written in earlier:
            for two, w_row, w_written in later:
                v, w = self._windows[one], self._windows[two]
                if not (v_written or w_written) or self.root[v.array] != self.root[w.array]:
                    continue
                if self.meet(v, w) is False:
                    continue
                if v.array != w.array:
                    return Reason(f"{w.array} may share memory with {v.array}", (v, w))
                distances.append(v_row - w_row)
        return (min(distances), max(distances)) if distances else None


def skews(body: Sequence[Part], region: Region) -> tuple[Skew, ...] | Reason:
    """Return the skews of statements that are to run in time tiles, or why they cannot."""
    root = families(region)
    written = {root[window.array] for part in body for window in writes(part)}
    analysis = SkewAnalysis(root, written, lambda v, w: clash(v, w, region))
    for part in body:
        reason = analysis.add(part)
        if reason is not None:
            return reason
    return tuple(analysis.skews)


def time_tile_conflict(stmt: TimeTiles, region: Region) -> Reason | None:
    """Return why time tiles would give other results than running their statements one after the other; None
    if they give the same."""
    all_skews = skews(stmt.body, region)
    if isinstance(all_skews, Reason):
        return all_skews
    if stmt.height < 1 or stmt.tile % stmt.height:
        return Reason("a tile has whole bands")
    if stmt.tile < max(skew.ahead + skew.behind for skew in all_skews):
        return Reason("a tile is lower than the rows at its sides")
    return None
