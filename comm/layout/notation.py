"""The text form of layouts, by which the arrays of a printed region are annotated.

``grid(2, 3), block(0), cyclic(1, 64), whole, halo((1, 1), (0, 0), (0, 0))`` is a layout of an array of three
axes.  ``block(0, (5, 4))`` gives the sizes of blocks, ``block(0, cut(9, 1))`` aligns the axis to the elements
from 1 on of an axis of nine.  A final ``partial("add", 2, block(1))`` marks an array of partial results: each
rank has reduced its share of axis 2 of the statement's iteration space; the ranks' results must still be
added.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dcarray.comm.transport.errors import LayoutError

from .grid import ProcessGrid
from .layouts import Block, Cut, Cyclic, Layout, Spec, Whole

__all__ = ["Partial", "canonical", "read", "write"]


_SPECS: dict[str, Any] = {"whole": Whole, "block": Block, "cyclic": Cyclic}


@dataclass(frozen=True)
class Partial:
    """The mark of an array of partial results: the reduction's operation, and the layout of the reduced axes.

    `along` holds pairs of a reduced axis of the statement and its distribution; axis -1 stands for none of
    the statement's axes: the statement only combines partial results of other arrays.
    """

    op: str
    along: tuple[tuple[int, Block | Cyclic], ...]

    @property
    def over(self) -> tuple[int, ...]:
        """The grid axes along which ranks have partial results of the same elements."""
        return tuple(sorted(spec.grid_axis for _, spec in self.along))


@lru_cache(maxsize=4096)
def write(layout: Layout | None, partial: Partial | None = None) -> str | None:
    """Return the text form of a layout; None for the layout None (whole on every rank)."""
    if layout is None:
        return None
    words = [f"grid({', '.join(map(str, layout.grid.shape))})", *map(_write_spec, layout.axes)]
    if any(map(any, layout.halo)):
        words.append(f"halo({', '.join(map(str, layout.halo))})")
    if partial is not None:
        along = ", ".join(f"{axis}, {_write_spec(spec)}" for axis, spec in partial.along)
        words.append(f'partial("{partial.op}", {along})')
    return ", ".join(words)


def _write_spec(spec: Spec) -> str:
    if isinstance(spec, Whole):
        return "whole"
    if isinstance(spec, Cyclic):
        return f"cyclic({spec.grid_axis}, {spec.block})"
    if spec.sizes is None:
        return f"block({spec.grid_axis})"
    if isinstance(spec.sizes, Cut):
        cut = spec.sizes
        words = [cut.extent, cut.offset, cut.stride, cut.sizes]
        while words[-1] == (None if len(words) == 4 else 1 if len(words) == 3 else ...):
            words.pop()
        return f"block({spec.grid_axis}, cut({', '.join(map(str, words))}))"
    return f"block({spec.grid_axis}, {spec.sizes})"


@lru_cache(maxsize=4096)
def read(text: str | None, shape: tuple[int, ...]) -> tuple[Layout | None, Partial | None]:
    """Return the layout of an array, and its mark of partial results or None, from the text of `write`.

    Raises
    ------
    LayoutError
        When the text is not the text form of a layout, or does not fit the shape.
    """
    if text is None:
        return None, None
    specs: list[Spec] = []
    grid, halo, partial = None, None, None
    for node in ast.parse(f"({text},)", mode="eval").body.elts:  # type: ignore[attr-defined]
        name, values = _parse_word(node)
        if name == "grid":
            grid = ProcessGrid(values)
        elif name in _SPECS:
            specs.append(_SPECS[name](*values))
        elif name == "halo":
            halo = values
        elif name == "partial":
            partial = Partial(values[0], tuple(zip(values[1::2], values[2::2], strict=True)))
        else:
            raise LayoutError(f"{name!r} says nothing of a layout")
    if grid is None:
        raise LayoutError(f"a layout names its grid, which {text!r} does not")
    return Layout(shape, grid, specs, 0 if halo is None else halo), partial


def _parse_word(node: Any) -> tuple[str, list[Any]]:
    if isinstance(node, ast.Name):
        return node.id, []
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise LayoutError(f"{ast.unparse(node)} says nothing of a layout")
    return node.func.id, [_parse_value(arg) for arg in node.args]


def _parse_value(node: Any) -> Any:
    if isinstance(node, ast.Call):
        name, values = _parse_word(node)
        return {**_SPECS, "cut": Cut}[name](*values)
    return ast.literal_eval(node)


@lru_cache(maxsize=4096)
def canonical(layout: Layout | None) -> Layout | None:
    """Return a layout without grid axes of one rank; None if every rank has the whole array."""
    if layout is None:
        return None
    kept = [g for g, n in enumerate(layout.grid.shape) if n > 1]
    grid = ProcessGrid([layout.grid.shape[g] for g in kept])
    specs: list[Spec] = []
    for spec in layout.axes:
        if isinstance(spec, Whole) or spec.grid_axis not in kept:
            specs.append(Whole())
        elif isinstance(spec, Cyclic):
            specs.append(Cyclic(kept.index(spec.grid_axis), spec.block))
        else:
            specs.append(Block(kept.index(spec.grid_axis), spec.sizes))
    if all(isinstance(spec, Whole) for spec in specs) and not any(map(any, layout.halo)):
        return None
    return Layout(layout.shape, grid, specs, layout.halo)
