"""Index-set splitting: a statement that reads an array made in parts is split where the parts meet.

`np.roll` makes two copies for each axis along which it shifts: the part that stays in order and the part that
wraps around.  No window reads both.  Split along the same lines, each piece of the reader sees one of the
copies and reads through it: a stencil over a periodic grid becomes one statement for the interior and small
ones for the rims, and no shifted array is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Array, Compute, Const, Dim, Expr, Gather, Index, Load, Region, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import loads_of, size_bound
from dcarray.ir.passes.flow import Block, Facts, reads_of
from dcarray.ir.passes.fusion_profit import EXPRESSION
from dcarray.ir.passes.match import containing_map
from dcarray.ir.passes.nested import in_bodies
from dcarray.ir.renaming import unused_names

#: Domains with fewer points are not worth more kernels.
MIN_POINTS = 1 << 13
#: The largest piece has at least one in so many points: the others are rims.
PART = 2
#: The most pieces of a statement (three for each of three axes), and the most nodes of all their expressions.
MAX_PIECES = 27
MAX_WRITTEN = 3000
#: An in-place update needs a copy of its result, which is worth it for at least so many arrays that are
#: saved.
IN_PLACE = 2

Parts = list[tuple[int, Compute]]  # the statements that make an array, each with the position it comes from
_Cuts = list[list[Dim]]  # for each axis of a domain where its pieces begin and end, in order


# ---- legality -----------------------------------------------------------------------------------------
def can_read_through(block: Block, name: str) -> Reason | None:
    """Return why readers cannot read the sources of an array's parts instead of it; None if they can."""
    facts = block.facts
    root = facts.roots[name]
    if root in facts.kept or root in facts.shared:
        return Reason(f"{name} is used elsewhere")
    makers = reads = 0
    computed = False
    for pos in block.touching(name, -1):
        stmt = block.stmts[pos]
        if not isinstance(stmt, Compute):
            return Reason(f"{name} is used by more than plain statements")
        if stmt.target.array == name:
            makers += 1
            if stmt.combine is not None or windows.box(stmt.target) is None:
                return Reason(f"{name} is not made box by box", (stmt.target,))
            if any(window.array == name for window, _ in block.reads[pos]):
                return Reason(f"{name} is made from itself", (stmt.target,))
            computed = computed or not isinstance(stmt.body, Load | Const)
        else:
            for window, kind in block.reads[pos]:
                if window.array == name and (kind != "load" or stmt.combine is not None):
                    return Reason(f"{name} is read by more than element-wise statements", (window,))
                reads += window.array == name
    if computed and reads > 1:
        return Reason(f"{name} would be computed {reads} times")
    return None if makers > 1 else Reason(f"{name} is not made in parts")


def source_of(block: Block, pos: int, window: Window, parts: Parts) -> Expr | Reason:
    """Return the expression that the statement at ``pos`` can use instead of a load of ``window``, whose
    array was written in ``parts``, or why there is none."""
    for at, part in reversed(parts):
        amap = containing_map(part.target, window)
        if amap is None:
            continue
        changed = block.writer_between(at, pos, window)
        if changed is not None:
            return Reason(f"{window.array} changes before it is read", (window, changed))
        body = windows.remap(part.body, amap, window.shape)
        for node in loads_of(body):
            changed = block.writer_between(at, pos, _reach(node))
            if changed is not None:
                return Reason(f"{node.window.array} changes before {window.array} is read", (changed,))
        return body
    return Reason(f"{window.array} is read where its parts meet", (window,))


def _reach(node: Load | Gather) -> Window:
    return node.window if isinstance(node, Load) else replace(node.window, index=())


def write_conflict(facts: Facts, whole: Compute, pieces: list[Compute]) -> Reason | None:
    """Return why the pieces of a statement must not write to its target, because another piece may still have
    to read it; else None."""
    for piece in pieces:
        for node in loads_of(piece.body):
            window = _reach(node)
            if facts.overlap(whole.target, window) is False or windows.same(piece.target, window):
                continue
            return Reason(f"{whole.target.array} is written at other points than it is read", (window,))
    return None


# ---- where to cut -------------------------------------------------------------------------------------
def _cuts(stmt: Compute, parts: dict[str, Parts], names: set[str]) -> _Cuts | Reason:
    """Return the positions along each axis at which to split the statement so that each piece reads one part
    of each array."""
    shape = stmt.target.shape
    cuts: _Cuts = [[0, extent] for extent in shape]
    for node in loads_of(stmt.body):
        if not isinstance(node, Load) or node.window.array not in names:
            continue
        for part in parts[node.window.array]:
            ends = windows.box(part[1].target)
            assert ends is not None
            for ix, sides in zip(node.window.index, ends, strict=True):
                if ix.axis is None:
                    continue
                if dims.prove_eq(ix.stride, 1) is not True:
                    return Reason(f"{node.window.array} is read in steps", (node.window,))
                for side in sides:
                    if not _insert(cuts[ix.axis], dims.simplify(side - ix.offset)):
                        return Reason("it is not known in which order its pieces come", (node.window,))
    return cuts


def _insert(cuts: list[Dim], cut: Dim) -> bool:
    """Insert a cut in order, unless it is outside or there already; False if that is not known."""
    for k, other in enumerate(cuts):
        if dims.prove_eq(cut, other) is True:
            return True
        below = dims.prove_lt(cut, other)
        if below is None:
            return False
        if below:
            if k > 0:
                cuts.insert(k, cut)
            return True
    return True


def worth_cutting(stmt: Compute, array: Array, cuts: _Cuts, hints: SizeHints) -> Reason | None:
    """Return why splitting does not pay, or needs too many kernels; else None.  ``array`` is the target's
    array, of which the statement may write only a rim."""
    points = hints.product(stmt.target.shape)
    pieces = largest = 1
    for ends in cuts:
        pieces *= len(ends) - 1
        largest *= max(hints(high) - hints(low) for low, high in pairwise(ends))
    if (size := hints.product(array.shape)) < MIN_POINTS:
        return Reason(f"{size} points are too few for more kernels")
    if pieces > MAX_PIECES or pieces * size_bound(stmt.body) > MAX_WRITTEN:
        return Reason(f"{pieces} pieces are too many")
    if largest * PART < points:
        return Reason("no piece has most of the points")
    return None


# ---- action -------------------------------------------------------------------------------------------
def pieces_of(stmt: Compute, cuts: _Cuts) -> Iterator[tuple[tuple[Index, ...], Compute]]:
    """Return the pieces of the statement, split along all axes, each with its position in the domain."""
    for ends in product(*(list(pairwise(along)) for along in cuts)):
        shape = tuple(dims.simplify(high - low) for low, high in ends)
        amap = tuple(Index(low, 1, axis) for axis, (low, _) in enumerate(ends))
        target, body = windows.compose(stmt.target, amap, shape), windows.remap(stmt.body, amap, shape)
        yield amap, replace(stmt, target=target, body=body)


def _through(
    block: Block, pos: int, piece: Compute, parts: dict[str, Parts], names: set[str]
) -> Compute | str:
    """Return a piece that reads the sources of the arrays ``names`` instead of these; or the name of the
    array for which that is impossible."""
    instead: dict[Expr, Expr] = {}
    for node in loads_of(piece.body):
        if isinstance(node, Load) and node.window.array in names:
            source = source_of(block, pos, node.window, parts[node.window.array])
            if isinstance(source, Reason):
                return node.window.array
            instead[node] = source
    body = windows.map_loads(piece.body, lambda node: instead.get(node, node))
    if size_bound(body) > EXPRESSION.nodes or len(loads_of(body)) > EXPRESSION.loads:
        return min(names)
    return replace(piece, body=body)


class _Sweep:
    """One traversal of the statements of a region, in order."""

    def __init__(self, region: Region, log: Log) -> None:
        self.region, self.log, self.hints = region, log, SizeHints(region)
        self.block = Block(region.body, Facts(region))
        names = dict.fromkeys(stmt.target.array for stmt in region.body if isinstance(stmt, Compute))
        #: the current parts of the arrays that are made in parts
        self.parts: dict[str, Parts] = {
            name: [] for name in names if can_read_through(self.block, name) is None
        }
        self.arrays: list[Array] = []
        self.changed = False

    def region_after(self) -> Region:
        """Return the region in which statements are split where that is worth it."""
        if not self.parts:
            return self.region
        body: list[Stmt] = []
        for pos, stmt in enumerate(self.region.body):
            now = self.cut(pos, stmt) if isinstance(stmt, Compute) else [stmt]
            body += now
            if isinstance(stmt, Compute) and stmt.target.array in self.parts:
                self.parts[stmt.target.array] += [(pos, part) for part in now if isinstance(part, Compute)]
        if not self.changed:
            return self.region
        return replace(
            self.region, arrays=(*self.region.arrays, *self.arrays), body=self.without_unread(body)
        )

    def without_unread(self, body: list[Stmt]) -> tuple[Stmt, ...]:
        """Return the statements that write arrays which are still read."""
        read: set[str] = set()
        kept: list[Stmt] = []
        for stmt in reversed(body):
            if isinstance(stmt, Compute) and (name := stmt.target.array) in self.parts and name not in read:
                continue
            read.update(window.array for window, _ in reads_of(stmt))
            kept.append(stmt)
        return tuple(reversed(kept))

    def cut(self, pos: int, stmt: Compute) -> list[Compute]:
        """Return the statement, or its pieces."""
        names = {n.window.array for n in loads_of(stmt.body) if isinstance(n, Load)} & set(self.parts)
        while names and stmt.combine is None:
            cuts = _cuts(stmt, self.parts, names)
            array = self.block.facts.arrays[stmt.target.array]
            reason = cuts if isinstance(cuts, Reason) else worth_cutting(stmt, array, cuts, self.hints)
            if reason is not None or isinstance(cuts, Reason):
                self.refuse(stmt, reason)
                break
            pieces: list[Compute] = []
            places: list[tuple[Index, ...]] = []
            for place, piece in pieces_of(stmt, cuts):
                through = _through(self.block, pos, piece, self.parts, names)
                if isinstance(through, str):
                    names.discard(through)
                    break
                pieces.append(through)
                places.append(place)
            else:
                return self.place(stmt, pieces, places, names)
        return [stmt]

    def place(
        self, stmt: Compute, pieces: list[Compute], places: list[tuple[Index, ...]], names: set[str]
    ) -> list[Compute]:
        """Return the pieces, which write to the target, or to a new array if other pieces still have to read
        the target."""
        reason = write_conflict(self.block.facts, stmt, pieces)
        if reason is not None and len(names) < IN_PLACE:
            self.refuse(stmt, reason)
            return [stmt]
        self.changed = True
        name, through = stmt.target.array, ", ".join(sorted(names))
        self.log.done(
            "index_set_splitting",
            f"{name} is made in {len(pieces)} pieces, which read through {through}",
            stmt.loc,
        )
        return pieces if reason is None else self.write_aside(stmt, pieces, places)

    def write_aside(
        self, stmt: Compute, pieces: list[Compute], places: list[tuple[Index, ...]]
    ) -> list[Compute]:
        """Return the pieces, written to a new array, and a copy of that array to the target."""
        taken = {array.name for array in (*self.region.arrays, *self.arrays)}
        name = next(unused_names("w", taken))
        array = Array(name, self.block.facts.arrays[stmt.target.array].dtype, stmt.target.shape)
        self.arrays.append(array)
        whole = windows.identity(array)
        written = [
            replace(piece, target=windows.compose(whole, place, piece.target.shape))
            for piece, place in zip(pieces, places, strict=True)
        ]
        return [*written, replace(stmt, body=Load(whole, array.dtype))]

    def refuse(self, stmt: Compute, reason: Reason | None) -> None:
        """Note why a statement is not split."""
        if reason is not None:
            self.log.refused(
                "index_set_splitting", f"{stmt.target.array} is not cut: {reason.text}", stmt.loc
            )


def _run(region: Region, log: Log) -> Region:
    if len(region.body) > 2:
        region = _Sweep(region, log).region_after()
    return in_bodies(region, log, _run)


INDEX_SET_SPLITTING = Pass("index_set_splitting", _run)
