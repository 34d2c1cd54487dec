"""The entries of a log as named tuples: the one module that knows the positions of their fields.

A log is the recorder's compact form of a program: plain tuples, which are hashed on every flush.  Its
entries, where a *slot* is the number of a declaration (``old`` or ``new``) in the order of the log:

``("old", char, shape, strides, head)``
    Memory that exists; ``head`` is the slot of the first array on the same memory.
``("new", char, shape, head)``
    An array to be computed; ``head`` is its own slot, or that of the array it is a reshape of.
``("map", op, loop, shape, out, index, *args)``
    An element-wise operation over the domain ``shape`` into the window ``index`` of slot ``out``.
    ``loop`` is written as in ``ufunc.types``: ``"dd->d"``.
``("fold", op, loop, shape, axes, keepdims, out, arg)``
    A reduction of ``arg`` over ``axes`` of the domain ``shape`` into all of slot ``out``; with an ``op`` of
    ``ops.PLACES`` over one axis, or over all of them, counted in C order; with one of ``ops.SCANS`` the
    result has the shape of the domain.
``("call", op, (out, ...), (arg, ...), attrs)``
    A library call that fills all of its outputs.

An argument is the number of a scalar, or ``(slot, index, shape)``, where ``index`` None is all of the
array and ``shape`` None is the domain (a call has none); shapes broadcast to the domain as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "Declaration", "Entry", "Statement",
    "contiguous_log", "declarations", "is_declaration", "read", "statements",
]  # fmt: skip

Entry = tuple[Any, ...]


class Declaration(NamedTuple):
    """An array of a log.

    Attributes
    ----------
    kind : {"old", "new"}
    char : str
        Its dtype.
    shape : tuple of int
    strides : tuple of int or None
        In elements; None for C order.
    head : int
        The slot of the first array on the same memory.
    """

    kind: str
    char: str
    shape: Any
    strides: Any
    head: int

    @property
    def is_new(self) -> bool:
        """Whether the array is to be computed."""
        return self.kind == "new"

    def entry(self) -> Entry:
        """Return the declaration as the plain tuple in the log."""
        return (self.kind, self.char, self.shape, self.head) if self.is_new else tuple(self)


class Statement(NamedTuple):
    """A statement of a log; a field that does not apply to its kind is empty.

    Attributes
    ----------
    kind : {"map", "fold", "call"}
    op : str
    loop : str
    shape : tuple of int
        The domain.
    outs : tuple of int
        The slots that it writes.
    args : tuple
        The operands: ``(slot, index, shape)``, or the number of a scalar.
    index : tuple or None
        (Of a map.)  The window that it writes; None for all of the array.
    axes : tuple of int
        (Of a fold.)
    keepdims : bool
        (Of a fold.)
    attrs : tuple
        (Of a call.)
    """

    kind: str
    op: str
    loop: str
    shape: Any
    outs: tuple[int, ...]
    args: tuple[Any, ...]
    index: Any = None
    axes: tuple[int, ...] = ()
    keepdims: bool = False
    attrs: Any = ()

    @property
    def out(self) -> int:
        """The slot that a map or a fold writes."""
        return self.outs[0]

    @property
    def arrays(self) -> list[Any]:
        """The arguments that are arrays."""
        return [arg for arg in self.args if type(arg) is not int]

    @property
    def scalars(self) -> list[int]:
        """The numbers of the scalars among the arguments."""
        return [arg for arg in self.args if type(arg) is int]

    def entry(self) -> Entry:
        """Return the statement as the plain tuple in the log."""
        kind, op, loop, shape, outs, args, index, axes, keepdims, attrs = self
        if kind == "map":
            return (kind, op, loop, shape, outs[0], index, *args)
        if kind == "fold":
            return (kind, op, loop, shape, axes, keepdims, outs[0], args[0])
        return (kind, op, outs, args, attrs)


def is_declaration(entry: Entry) -> bool:
    """Whether an entry declares an array."""
    return entry[0] in ("old", "new")


def read(entry: Entry) -> Declaration | Statement:
    """Return the named tuple of an entry.

    Raises
    ------
    ValueError
        If the entry's first field is no known kind.
    """
    kind = entry[0]
    if kind == "map":
        _, op, loop, shape, out, index, *args = entry
        return Statement(kind, op, loop, shape, (out,), tuple(args), index)
    if kind == "new":
        _, char, shape, head = entry
        return Declaration(kind, char, shape, None, head)
    if kind == "old":
        return Declaration(*entry)
    if kind == "fold":
        _, op, loop, shape, axes, keepdims, out, arg = entry
        return Statement(kind, op, loop, shape, (out,), (arg,), None, axes, keepdims)
    if kind != "call":
        raise ValueError(f"{kind!r} is no kind of log entries")
    _, op, outs, args, attrs = entry
    return Statement(kind, op, "", (), tuple(outs), tuple(args), attrs=attrs)


def declarations(log: Iterable[Entry]) -> list[Declaration]:
    """Return the arrays of a log by their slots."""
    return [read(entry) for entry in log if is_declaration(entry)]  # type: ignore[misc]


def statements(log: Iterable[Entry]) -> list[Statement]:
    """Return the statements of a log in order."""
    return [read(entry) for entry in log if not is_declaration(entry)]  # type: ignore[misc]


def contiguous_log(log: list[Entry]) -> list[Entry]:
    """Return a log whose arrays are all in C order: itself, if they are already."""
    if not any([entry[0] == "old" and entry[3] is not None for entry in log]):
        return log
    return [(*entry[:3], None, entry[4]) if entry[0] == "old" else entry for entry in log]
