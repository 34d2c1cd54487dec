"""Copies of what a run overwrites, made by the run itself, in case it has to be made again.

As statements of the region they are fused with what overwrites: one more array written, and nothing read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import dims
from .effects import writes
from .nodes import Array, Compute, Index, Load, Region, Window
from .windows import covers, identity


@dataclass(frozen=True, slots=True)
class Kept:
    """The array ``copy`` holds what ``array`` held under ``window`` before the run."""

    array: str
    copy: str
    window: Window

    @property
    def slices(self) -> str:
        """Where that is in both, as a Python expression over the region's symbols: an index."""
        parts = []
        for ix in self.window.index:
            count = 1 if ix.axis is None else self.window.shape[ix.axis]
            stop = ix.offset + (count - 1) * ix.stride + 1
            parts.append(f"slice({', '.join(map(dims.show, (ix.offset, stop, max(ix.stride, 1))))})")
        return f"({''.join(f'{part}, ' for part in parts)})"


def keeping(region: Region, names: Sequence[str]) -> tuple[Region, tuple[Kept, ...]]:
    """The region with copies of these arrays, which come last among its arrays and have C order.

    Parameters
    ----------
    region : Region
        Of statements that are no loops or branches.
    names : sequence of str
        Existing arrays, from `ir.effects.lost`.

    Returns
    -------
    Region
        The same object if there are no names.
    tuple of Kept
        One for each name.
    """
    if not names:
        return region, ()
    arrays = {array.name: array for array in region.arrays}
    windows = [_window(arrays[name], region) for name in names]
    kept = tuple([Kept(name, f"kept_{name}", w) for name, w in zip(names, windows, strict=True)])
    copies = tuple([replace(arrays[k.array], name=k.copy, role="out", strides=None, base=None) for k in kept])
    saves = tuple(
        [Compute(replace(k.window, array=k.copy), Load(k.window, arrays[k.array].dtype)) for k in kept]
    )
    return replace(region, arrays=(*region.arrays, *copies), body=(*saves, *region.body)), kept


def _window(array: Array, region: Region) -> Window:
    """All of the array that is written, as one window; the whole array if there is none so simple."""
    written = [w for stmt in region.body for w in writes(stmt) if w.array == array.name]
    first = written[0] if written else identity(array)
    axes = [ix.axis for ix in first.index if ix.axis is not None]
    simple = (
        len(first.index) == len(array.shape)
        and sorted(axes) == list(range(len(first.shape)))
        and all(type(ix.stride) is int and ix.stride > 0 for ix in first.index if ix.axis is not None)
    )
    alone = array.base is None and not any(other.base == array.name for other in region.arrays)
    if not (simple and alone and all(covers(first, w) is True for w in written)):
        return identity(array)
    # its axes as they run along the array, wherever those of loops were
    shape = tuple(first.shape[axis] for axis in axes)
    return Window(first.array, shape, tuple(_along(ix, axes) for ix in first.index))


def _along(ix: Index, axes: Sequence[int]) -> Index:
    return ix if ix.axis is None else replace(ix, axis=axes.index(ix.axis))
