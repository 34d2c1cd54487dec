"""The profitability of fusions: one cost function for all kinds of fusion, and its constants.

The unit of cost is an addition, for one element, in a vectorised loop over data in the first cache.
The constants were measured on processors with a second cache of 2 MB, and are the same everywhere, so that a
region has one form.  An EPYC with AVX2, beside other work, has 16 for `TRIP`, 240 for `CALL` and no cost to
be seen for `START`, which is on the safe side.
"""

from __future__ import annotations

from dcarray.ir.records import record

from .exprs import Summary

#: Writing an element to memory and reading it again; an access that is saved is half of that.
TRIP = 40.0
#: The start of a loop along a row: its bounds, its first loads, the elements that are no whole vector.
START = 1280.0
#: Elements that the second cache of a core holds, in doubles.
CACHE = 1 << 18
#: Elements that exceed all that a core has of caches; and the last cache, which cores share.
OUT_OF_CACHE, OUT_OF_LAST_CACHE = 2 * CACHE, 8 * CACHE
#: Rows that are folded together, and so many of which stay in the second cache with their partial results.
FOLDED_ROWS = 4
#: Cores that are to have work.
CORES = 16
#: The least cost of an operation that is a call, block by block; see ``ops.OPS``.
CALL = 10.0
#: Of the work of expressions that are repeated, the part that they surely do not have in common.
APART = 0.5
#: How often a value is computed again that is the same along axes: all (a kernel does it once), the innermost
#: ones (once for each row, as long as they are innermost in the kernel too), an outer one.
AGAIN_ALL, AGAIN_INNER, AGAIN_OUTER = 1.0, 5.0, 40.0


@record(frozen=True, slots=True)
class Capacity:
    """The limits of one loop body, so that it compiles fast and its values fit into registers.

    Attributes
    ----------
    statements : int
    arrays : int
        Arrays that are accessed; each is a stream of memory accesses.
    loads : int
        Places from which one expression loads.
    nodes : int
        Nodes of the expressions.
    """

    statements: int = 1
    arrays: int = 64
    loads: int = 64
    nodes: int = 400


EXPRESSION = Capacity()
NEST = Capacity(statements=8, arrays=16, nodes=600)
ROWS = Capacity(statements=16)


@record(frozen=True, slots=True)
class Change:
    """The costs and savings of a fusion.

    Attributes
    ----------
    saved : float
        Accesses of memory that are saved, for each element.
    again : float
        Work that is repeated, for each element.
    rows : int or None
        The number of rows, where statements are to run row by row.
    row : int
        The points of a row.
    folds : bool
        Whether rows are folded into partial results.
    """

    saved: float
    again: float = 0.0
    rows: int | None = None
    row: int = 1
    folds: bool = False


def loss(change: Change) -> str | None:
    """Return why the costs of a fusion exceed its savings; None if they do not."""
    if not change.saved:
        return "they have no data in common"
    saved = change.saved * TRIP / 2
    if saved < change.again:
        return f"{change.again:g} operations and loads per element would be repeated"
    if change.rows is None:
        return None
    if change.rows < CORES:
        return f"{change.rows} rows are too few for many cores"
    if saved * change.row < START:
        return f"rows of {change.row} points are too short"
    if change.folds and change.rows * change.row < OUT_OF_LAST_CACHE:
        return "what they go over fits into the caches"
    if change.row > (CACHE // FOLDED_ROWS if change.folds else CACHE):
        return f"rows of {change.row} points do not stay in the cache"
    return None


def repeated_work(price: Summary, times: int) -> float:
    """Return the work added by computing an expression ``times`` times more; infinite for a costly function,
    which is never repeated."""
    return float("inf") if times and price.dearest >= CALL else APART * times * price.work


def work_along(price: Summary, axes: tuple[int, ...], rank: int) -> float:
    """Return the repeated work per element of a value that does not change along ``axes`` of a domain."""
    if not axes:
        return 0.0
    if len(axes) == rank:
        return AGAIN_ALL * price.work
    return (AGAIN_INNER if axes[0] >= rank - len(axes) else AGAIN_OUTER) * price.work
