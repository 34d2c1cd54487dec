"""Distribution of arrays as users set and read it: `distribute`, ``layout``, ``local``, ``gather``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.cart import Cart, as_grid
from dcarray.comm.exchange.redistribute import redistribute
from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.layout.layouts import Layout, Spec, Widths
from dcarray.comm.transport.agreement import check_equal
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import check_rank
from dcarray.comm.transport.world import world
from dcarray.core import config
from dcarray.core.handle import Handle, large
from dcarray.core.processes import communicating
from dcarray.core.shard import Shard, local_block, set_shard
from dcarray.core.store import Store, compiles

__all__ = ["LocalView", "blocks_of", "distribute", "gather", "layout_of", "local_of"]

NDArray = np.ndarray[Any, Any]


def distribute(
    x: Any,
    grid: Cart | ProcessGrid | Sequence[int] | None = None,
    axes: Sequence[Spec] | None = None,
    halo: Widths = 0,
) -> ndarray:
    """Distribute an array over the ranks, in a layout of your choice.

    Parameters
    ----------
    x : array_like
        The array, the same on all ranks, each of which takes its shard; or a distributed array, which is
        redistributed without being gathered.
    grid : Cart, ProcessGrid or sequence of int, optional
        Ranks along each of the array's first axes; by default the option ``grid``, or the grid with the least
        surface between blocks.
    axes : sequence of Block, Cyclic or Whole, optional
        The distribution of each axis; by default blocks over the grid's axes.
    halo : int or sequence, optional
        The width of the ghost zone from the beginning; it grows when a statement needs a wider one.

    Returns
    -------
    ndarray
        A distributed copy.

    Raises
    ------
    GridError, LayoutError
        If grid, axes or halo do not fit the array or the ranks.
    MismatchError
        If ranks disagree on shape, dtype or layout.
    TypeError
        If kernels do not support the dtype.

    Examples
    --------
    On one rank the array is a plain copy; under ``mpiexec`` each rank has its block.

    >>> import numpy as np, dcarray as dc
    >>> x = dc.distribute(np.arange(6.0))
    >>> float((x * x).sum())
    55.0
    """
    comm = world()
    source = x if isinstance(x, Handle) else np.asarray(x)
    if grid is None and (option := config.current().grid) is not None and len(option) <= source.ndim:
        grid = option
    over = choose_grid(source.shape, comm.size, rows=True) if grid is None else as_grid(grid)
    with communicating():
        check_equal(comm, (source.shape, source.dtype.str, over, axes, halo), "what is to be distributed")
    over.check(comm.size)
    layout = (
        Layout.blocks(source.shape, over, halo) if axes is None else Layout(source.shape, over, axes, halo)
    )
    if not compiles(source.dtype):
        raise TypeError(f"elements of dtype {source.dtype} are not distributed")
    head, window = blocks_of(source) if isinstance(source, Handle) else (None, None)
    if head is not None and window is None:
        held = head.remote
        block = np.empty(layout.local_shape(comm.rank), source.dtype)
        with communicating():
            redistribute(held.layout, layout, comm.rank).run(comm, held.block, block)
    else:
        whole = source._evaluated() if isinstance(source, Handle) else source
        block = local_block(whole, layout, comm)
    store = Store(source.shape, source.dtype)
    if comm.size == 1:
        store.bind(np.ascontiguousarray(block[layout.owned(0)]))
    else:
        set_shard(store, Shard(layout, block, comm))
    copy: ndarray = large(ndarray, store, source.shape, None)
    return copy


def blocks_of(x: Handle) -> tuple[Store | None, Any]:
    """Return the distributed head of an array's storage family, and the array's window of it.

    What is pending on it is run first.  The window is None for all of the array; both are None if the array
    is not distributed.
    """
    if x._small is not None:
        return None, None
    head = x._store.family
    for rec in (head.dirty, head.used):
        if rec is not None and not rec.done:
            rec.run(head)
    if head.remote is None:
        return None, None
    return head, None if x._store is head and x._index is None else x._window()


def layout_of(x: Handle) -> Layout:
    """Return the layout of a distributed array; of a view, the layout of the array that it views."""
    head, _ = blocks_of(x)
    if head is not None:
        layout: Layout = head.remote.layout
        return layout
    shape = x.shape if x._small is not None else x._store.family.shape
    return Layout.copies(shape, ProcessGrid((world().size,)))


class LocalView(np.ndarray[Any, Any]):
    """This rank's block as a plain array, which raises after the array has been redistributed or gathered."""

    _held: Any = None

    def __array_finalize__(self, source: Any) -> None:
        self._held = getattr(source, "_held", None)

    def _check(self) -> None:
        if self._held is not None and self._held.done:
            raise LayoutError(
                "the array of this local view was redistributed or gathered: read x.local again"
            )

    def __getitem__(self, key: Any) -> Any:
        self._check()
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        for x in (*inputs, *out):
            if isinstance(x, LocalView):
                x._check()
        if out:
            kwargs["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        return out[0] if len(out) == 1 else result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self._check()
        return super().__array_function__(func, types, args, kwargs)


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, LocalView) else x


def local_of(x: Handle, halo: bool = False) -> NDArray:
    """Return this rank's elements, writable in place; of a view, those of the whole array that it views."""
    head, _ = blocks_of(x)
    if head is None:
        return x._writable()
    held = head.remote
    held.exposed = True
    block = held.block if halo else held.block[held.layout.owned(held.comm.rank)]
    elements: Any = block.view(LocalView)
    elements._held = held
    head.exports = [*(head.exports or []), ref(elements)]
    return elements  # type: ignore[no-any-return]


def elements_of(x: Handle) -> NDArray:
    """Return the elements of an array as a plain one that may share its memory."""
    x._compute()
    head = x._store.family
    if head.remote is not None and x.size < head.size:
        x = x.copy()
    return x._evaluated()


def gather(x: Handle, root: int | None = None) -> NDArray | None:
    """Return a plain copy of a distributed array; with ``root`` only that rank gets it, others get None."""
    comm = world()
    if root is not None:
        check_rank(root, comm.size)
    head, window = blocks_of(x)
    if head is None or window is not None or root is None or not x.shape:
        whole = elements_of(x).copy()
        return whole if root in (None, comm.rank) else None
    held = head.remote
    target = Layout.on_one(x.shape, comm.size, root)
    elements: NDArray = np.empty(target.local_shape(comm.rank), x.dtype)
    with communicating():
        redistribute(held.layout, target, comm.rank).run(comm, held.block, elements)
    return elements if comm.rank == root else None
