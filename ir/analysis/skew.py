"""How far behind one another statements can run over the same rows: the geometry of ``Bands``.

A *row* is a point of the first axis of a statement's domain, and its number that of the row of the array that
the statement writes first.  Between row ``x`` of one statement and row ``y`` of a later one there is a
dependence only if ``y - x`` is one of a few *distances*, which follow from the windows.

Tile ``c`` begins at some row ``X[c]``.  Of a statement it takes the rows from ``X[c] + ahead`` to
``X[c+1] - behind``.  With ``ahead`` at least that of every earlier statement plus the largest distance, and
``behind`` at least that of every earlier statement less the smallest one, whatever a row depends on is in
its own tile; and what is between two tiles depends on tiles and on itself only, as long as tiles have
``ahead + behind`` rows.  Inside, rows go in order of ``row + behind``, so that nothing runs too early.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from dcarray.ir.dims import prove_eq, simplify
from dcarray.ir.nodes import Bands, Compute, Dim, Nest, Region, Window

from .effects import Reason, clash, domain, families, reads, writes

Part = Compute | Nest


@dataclass(frozen=True, slots=True)
class Slant:
    """A statement's ``count`` rows from row ``first`` on, and where it stands to those before it."""

    first: Dim
    count: Dim
    ahead: int
    behind: int


#: What a statement touches: numbers of windows with their first rows, relative to its own, and
#: whether it writes them.
_Use = tuple[int, int, bool]


class Slants:
    """Puts statements one behind the other.

    Parameters
    ----------
    root
        The family of every array's memory.
    written
        The families that some statement writes.
    meet
        Whether two windows may share memory, as ``effects.clash``.
    """

    def __init__(
        self,
        root: Mapping[str, str],
        written: Collection[str],
        meet: Callable[[Window, Window], bool | None],
    ) -> None:
        self.root, self.written, self.meet = root, frozenset(written), meet
        self.found: list[Slant] = []
        self._uses: list[tuple[_Use, ...]] = []
        self._numbers: dict[Window, int] = {}
        self._windows: list[Window] = []
        # statements of a loop come again and again
        self._spans: dict[tuple[tuple[_Use, ...], tuple[_Use, ...]], tuple[int, int] | Reason | None] = {}

    def add(self, part: Part) -> Reason | None:
        """Put a statement behind all others, or say why that cannot be."""
        target = writes(part)[0]
        first = target.index[0].offset if target.index else 0
        uses = self._used(part, first)
        if isinstance(uses, Reason):
            return uses
        ahead = behind = 0
        for earlier, slant in zip(self._uses, self.found, strict=True):
            key = earlier, uses
            if key not in self._spans:
                self._spans[key] = self._span(earlier, uses)
            span = self._spans[key]
            if isinstance(span, Reason):
                return span
            if span is not None:
                ahead, behind = max(ahead, slant.ahead + span[1]), max(behind, slant.behind - span[0])
        self.found.append(Slant(first, domain(part)[0], ahead, behind))
        self._uses.append(uses)
        return None

    def _used(self, part: Part, first: Dim) -> tuple[_Use, ...] | Reason:
        """What a statement touches of the memory that is written."""
        computes = (part,) if isinstance(part, Compute) else part.body
        folds = next((c.target for c in computes if c.combine is not None), None)
        if folds is not None:
            return Reason(f"{folds.array} is the result of a fold", (folds,))
        found: dict[_Use, None] = {}
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
                found[self._number(window), relative, writing] = None
        return tuple(found)

    def _number(self, window: Window) -> int:
        number = self._numbers.setdefault(window, len(self._windows))
        if number == len(self._windows):
            self._windows.append(window)
        return number

    def _span(self, earlier: tuple[_Use, ...], later: tuple[_Use, ...]) -> tuple[int, int] | Reason | None:
        """The smallest and the largest distance between two statements; None if they are independent."""
        distances = []
        for one, v_row, v_written in earlier:
            for two, w_row, w_written in later:
                v, w = self._windows[one], self._windows[two]
                if not (v_written or w_written) or self.meet(v, w) is False:
                    continue
                if v.array != w.array:
                    return Reason(f"{w.array} may share memory with {v.array}", (v, w))
                distances.append(v_row - w_row)
        return (min(distances), max(distances)) if distances else None


def slants(body: Sequence[Part], region: Region) -> tuple[Slant, ...] | Reason:
    """Where statements stand to one another that are to run in bands, or why they cannot."""
    root = families(region)
    written = {root[window.array] for part in body for window in writes(part)}
    made = Slants(root, written, lambda v, w: clash(v, w, region))
    for part in body:
        reason = made.add(part)
        if reason is not None:
            return reason
    return tuple(made.found)


def bands_conflict(stmt: Bands, region: Region) -> Reason | None:
    """Why ``stmt`` does not give what its statements give one after the other; None if it does."""
    found = slants(stmt.body, region)
    if isinstance(found, Reason):
        return found
    if stmt.height < 1 or stmt.tile % stmt.height:
        return Reason("a tile has whole bands")
    if stmt.tile < max(slant.ahead + slant.behind for slant in found):
        return Reason("a tile is lower than the rows at its sides")
    return None
