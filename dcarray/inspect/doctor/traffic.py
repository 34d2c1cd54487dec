"""The bytes that a line of array arithmetic moves in NumPy, and the bytes that it would need to move."""

from __future__ import annotations

import ast
import math
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Traffic", "traffic"]

_OPS = (ast.BinOp, ast.UnaryOp, ast.Compare)
_TESTS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


class Traffic(NamedTuple):
    """The memory traffic of one run of a line.

    Attributes
    ----------
    moved : int
        Bytes that its operations read and write, one after the other.
    needed : int
        Bytes of its arrays, each read once, and of its result.
    temporaries : int
        Arrays that are made and read again within the line.
    largest : int
        Bytes of the largest of them.
    """

    moved: int
    needed: int
    temporaries: int
    largest: int


class _Unknown(Exception):
    """Raised when the size of something in a line is unknown."""


def traffic(source: str, line: int, values: dict[str, Any]) -> Traffic | None:
    """Return the memory traffic of a line; None if a size in it is unknown.

    Parameters
    ----------
    source : str
        The text of the file.
    line : int
    values : dict
        The value of each name: an integer, "number", or an array's shape, item size and kind.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    here = [n for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.AugAssign) and n.lineno == line]
    if len(here) != 1 or here[0].end_lineno != line:
        return None
    node = here[0]
    sums = _Sums(values)
    try:
        if isinstance(node, ast.AugAssign):
            target = sums.window(node.target)
            other = sums.value(node.value)
            moved = sums.moved + 2 * target + other
            needed = sums.read(node.target, target) + target
        else:
            size = sums.value(node.value)
            stores = any(isinstance(t, ast.Subscript) for t in node.targets)  # copies what was made
            if not sums.operations and not stores:
                return None
            moved, needed = sums.moved + 2 * size * stores, size
        needed += sums.needed()
    except (_Unknown, ValueError):
        return None
    last_is_kept = isinstance(node, ast.Assign) and not stores
    temporaries = sums.sizes[:-1] if last_is_kept else sums.sizes
    return Traffic(moved, needed, len(temporaries), max(temporaries, default=0)) if moved else None


class _Sums:
    """The sizes of expressions, and what was moved for them."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.inputs: dict[str, dict[str, int]] = {}  # by array: its windows
        self.sizes: list[int] = []
        self.moved, self.operations = 0, 0

    def value(self, node: ast.expr) -> int:
        """Return the bytes of the value of an expression."""
        array = self._array(node)
        return array.nbytes if array.ndim else 0

    def window(self, node: ast.expr) -> int:
        """Return the bytes of the elements that an augmented assignment changes."""
        array = self._input(node)
        if not array.ndim:
            raise _Unknown
        return array.nbytes

    def read(self, node: ast.expr, size: int) -> int:
        """Return what reading an input adds to the inputs that are known."""
        return 0 if any(ast.unparse(node) in windows for windows in self.inputs.values()) else size

    def needed(self) -> int:
        """Return the bytes of the inputs: overlapping windows of an array need no more than all of it."""
        whole = {name: self._input(ast.parse(name, mode="eval").body).nbytes for name in self.inputs}
        return sum(min(sum(parts.values()), whole[name]) for name, parts in self.inputs.items())

    def _array(self, node: ast.expr) -> np.ndarray[Any, Any]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return np.empty(())
        if isinstance(node, ast.Name | ast.Subscript):
            array = self._input(node)
            if array.ndim:
                base = node.value if isinstance(node, ast.Subscript) else node
                self.inputs.setdefault(ast.unparse(base), {})[ast.unparse(node)] = array.nbytes
            return array
        whole = isinstance(getattr(node, "op", None), ast.MatMult | ast.Not) or (
            isinstance(node, ast.Compare) and not all(isinstance(o, _TESTS) for o in node.ops)
        )
        if isinstance(node, _OPS) and not whole:
            return self._result_of([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)], node)
        if isinstance(node, ast.Call) and not node.keywords and isinstance(node.func, ast.Attribute):
            module = node.func.value
            function: Any = getattr(np, node.func.attr, None)
            if isinstance(module, ast.Name) and module.id in ("np", "numpy"):
                usual = (
                    isinstance(function, np.ufunc)
                    and function.nout == 1
                    and {"d->d", "dd->d"} & {*function.types}
                )
                if (usual and len(node.args) == function.nin) or (
                    function is np.where and len(node.args) == 3
                ):
                    return self._result_of(node.args, node)
        raise _Unknown

    def _result_of(self, parts: list[ast.expr], node: ast.expr) -> np.ndarray[Any, Any]:
        arrays = [self._array(part) for part in parts]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        wide = [a.itemsize for a in arrays if a.ndim]
        if not shape:
            return np.empty(())
        is_test = isinstance(node, ast.Compare)
        if not is_test and max(wide) < 4:  # of truth values alone: the type of the result is not known
            raise _Unknown
        result = _like(shape, 1 if is_test else max(wide))
        self.operations += 1
        self.sizes.append(result.nbytes)
        self.moved += result.nbytes + sum(a.nbytes for a in arrays if a.ndim)
        return result

    def _input(self, node: ast.expr) -> np.ndarray[Any, Any]:
        if isinstance(node, ast.Name):
            known = self._values.get(node.id)
            if isinstance(known, int) or known == "number":
                return np.empty(())
            if isinstance(known, list) and known[2] == "f":
                return _like(tuple(known[0]), known[1])
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            window: np.ndarray[Any, Any] = self._input(node.value)[tuple(map(self._index, indices))]
            return window
        raise _Unknown

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            return slice(
                *(None if p is None else self._integer(p) for p in (node.lower, node.upper, node.step))
            )
        return ... if isinstance(node, ast.Constant) and node.value is ... else self._integer(node)

    def _integer(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._integer(node.operand)
        known = self._values.get(node.id) if isinstance(node, ast.Name) else None
        if type(known) is not int:
            raise _Unknown
        return known


def _like(shape: tuple[int, ...], itemsize: int) -> np.ndarray[Any, Any]:
    """Return an array of a shape that takes no memory."""
    if math.prod(shape) > 1 << 40:
        raise _Unknown
    return np.broadcast_to(np.empty((), f"V{itemsize}"), shape)
