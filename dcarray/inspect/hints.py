"""``python -m dcarray hints script.py``: run a script, and write the types of arguments that it has seen.

The script runs as plain ``python`` runs it.  What comes out is a stub: the functions of the user's files with
annotations for `dcarray.program`.  Sizes that were equal in all calls have one symbol.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.store import COMPILED
from dcarray.jit.loops.entry.lists import elements_of

from .runner import Refused, execute, fail
from .user_files import UserFiles

__all__ = ["Observed", "main", "stub"]

_NAME = "python -m dcarray hints"
MOST = 64  # kinds of calls of a function that are kept
LISTS = 8  # calls of a function in which lists are looked at
LITERAL = 4  # a size up to this, if it never changes, is written as a number
NAMES = ("N", "M", "K", "L", "P", "Q", "R", "S", "U", "V", "W", "X", "Y", "Z")
_UNUSABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_NUMBERS = (bool, int, float, complex)

Kind = tuple[Any, ...]
"""What a value is: ("array", dtype, shape), ("number", type or dtype), or ("other", name of the type)."""


@dataclass(slots=True)
class Observed:
    """A function, and the kinds of its arguments.

    Attributes
    ----------
    code : code object
    names : mapping
        Its global names.
    calls : int
    kinds : dict
        The kinds of arguments of calls, each once, in order.
    """

    code: CodeType
    names: dict[str, Any]
    calls: int = 0
    kinds: dict[tuple[Kind, ...], None] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return self.code.co_varnames[: self.code.co_argcount + self.code.co_kwonlyargcount]


# ---- watching -----------------------------------------------------------------------------------------
def kind_of(value: Any, look: bool = True) -> Kind:
    """Return what a value is; ``look``: also into lists."""
    if isinstance(value, np.ndarray | ndarray):
        dtype = value.dtype
        return (
            ("array", dtype, tuple(value.shape)) if dtype.char in COMPILED else ("other", f"array of {dtype}")
        )
    if isinstance(value, np.generic):
        return ("number", value.dtype) if value.dtype.char in COMPILED else ("other", type(value).__name__)
    if type(value) in _NUMBERS:
        return "number", type(value)
    if type(value) is list and look and (found := elements_of(value)) is not None:
        return "array", found.array.dtype, found.array.shape
    return "other", type(value).__name__


class Watch:
    """A profiler that notes the arguments of calls of functions in the user's files."""

    def __init__(self) -> None:
        self._files = UserFiles(None)
        self.seen: dict[CodeType, Observed | None] = {}

    def prepare(self, root: str | None) -> None:
        """Set the folder of the script, whose files are the user's in any case."""
        self._files = UserFiles(root)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        found = self.seen.get(code, self)
        if found is self:
            named = code.co_qualname.isidentifier() and not code.co_filename.startswith("<")
            mine = named and not code.co_flags & _UNUSABLE and self._files.has(code.co_filename)
            found = self.seen[code] = Observed(code, frame.f_globals) if mine else None
        if isinstance(found, Observed) and found.arguments:
            found.calls += 1
            if len(found.kinds) < MOST:
                values, look = frame.f_locals, found.calls <= LISTS
                found.kinds[tuple([kind_of(values[name], look) for name in found.arguments])] = None

    def observed(self) -> list[Observed]:
        """Return the functions that were called, by file and line."""
        found = [one for one in self.seen.values() if one is not None and one.kinds]
        return sorted(found, key=lambda one: (one.code.co_filename, one.code.co_firstlineno))


# ---- types --------------------------------------------------------------------------------------------
class _Sizes:
    """The names of sizes in one function's types: axes that were equal in all calls have one name."""

    def __init__(self, taken: Sequence[str], changed: bool) -> None:
        self._free = iter([*[n for n in NAMES if n not in taken], *[f"N{k}" for k in range(1, 100)]])
        self._known: dict[tuple[int, ...], str] = {}
        self._changed = changed  # whether any size has
        self.names: list[str] = []

    def text(self, sizes: tuple[int, ...]) -> str:
        """Return the size of an axis, which was this in one call after the other."""
        if sizes in self._known:
            return self._known[sizes]
        if len(set(sizes)) == 1 and (self._changed or sizes[0] <= LITERAL):
            return str(sizes[0])
        if len(set(sizes)) > 1:
            for known, name in self._known.items():
                offsets = {a - b for a, b in zip(sizes, known, strict=True)}
                if len(offsets) == 1 and len(set(known)) > 1:
                    (offset,) = offsets
                    return f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
        name = next(self._free)
        self._known[sizes] = name
        self.names.append(name)
        return name


def types_of(one: Observed) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the types of a function's arguments as text, reasons for arguments without one, and the names
    of sizes."""
    columns = list(zip(*one.kinds, strict=True))
    shapes = [[kind[2] for kind in column] for column in columns if all(k[0] == "array" for k in column)]
    changed = any(len(set(column)) > 1 for column in shapes)
    sizes = _Sizes([*one.names, *one.code.co_varnames], changed)
    types, reasons = {}, {}
    for name, column in zip(one.arguments, columns, strict=True):
        text, reason = _type(column, sizes)
        if text:
            types[name] = text
        else:
            reasons[name] = reason
    return types, reasons, sizes.names


def _type(column: Sequence[Kind], sizes: _Sizes) -> tuple[str, str]:
    """Return the type of an argument, or why it has none."""
    sorts = {kind[0] for kind in column}
    seen = sorted({_shown(kind) for kind in column})
    if sorts == {"array"}:
        dtypes, ranks = {kind[1] for kind in column}, {len(kind[2]) for kind in column}
        if len(dtypes) > 1 or len(ranks) > 1:
            return "", " and ".join(seen)
        if ranks == {0}:
            return "", "an array without axes"
        axes = [sizes.text(axis) for axis in zip(*[kind[2] for kind in column], strict=True)]
        return f"dc.types.{dtypes.pop().name}[{', '.join(axes)}]", ""
    if sorts == {"number"}:
        types = {kind[1] for kind in column}
        if len(types) == 1:
            (found,) = types
            return (found.__name__ if isinstance(found, type) else f"np.{found.type.__name__}"), ""
        if types <= {int, float}:
            return "float", ""
        if types <= {int, float, complex}:
            return "complex", ""
    return "", " and ".join(seen)


def _shown(kind: Kind) -> str:
    if kind[0] == "array":
        return f"{len(kind[2])}-dimensional {kind[1].name}"
    if kind[0] == "number":
        return kind[1].__name__ if isinstance(kind[1], type) else str(kind[1].name)
    return str(kind[1])


# ---- the stub -----------------------------------------------------------------------------------------
def stub(observed: Sequence[Observed], command: str) -> str:
    """Return the text of a stub: functions that `dcarray.program` may take with annotations, others as
    comments that say why not.

    Parameters
    ----------
    observed : sequence of Observed
    command : str
        How it was made.
    """
    functions: list[str] = []
    symbols: dict[str, None] = {}
    file = ""
    for one in observed:
        types, reasons, names = types_of(one)
        if not any(kind[0] == "array" for kinds in one.kinds for kind in kinds):
            continue
        place, line = one.code.co_filename, one.code.co_firstlineno
        if place != file:
            file = place
            functions.append(f"\n# {os.path.relpath(file)}")
        calls = f"line {line}, {one.calls} call{'s' if one.calls > 1 else ''}"
        header = f"def {one.code.co_name}({_parameters(one, types)}): ..."
        if reasons:
            why = "; ".join(f"{name} was {reason}" for name, reason in reasons.items())
            functions.append(f"# {header}  # {calls}: no program, since {why}")
        else:
            symbols.update(dict.fromkeys(names))
            functions.append(f"{header}  # {calls}")
    head = [
        f"# Types of arguments that were seen by: {command}",
        "import numpy as np",
        "",
        "import dcarray as dc",
    ]
    sizes = [f'{name} = dc.symbol("{name}")' for name in symbols]
    return "\n".join([*head, *([""] if sizes else []), *sizes, *functions]) + "\n"


def _parameters(one: Observed, types: dict[str, str]) -> str:
    code, optional = one.code, set(_optional(one))
    texts = []
    for name in one.arguments:
        text = f"{name}: {types[name]}" if name in types else name
        texts.append(f"{text} = ..." if name in optional else text)
    if code.co_kwonlyargcount:
        texts.insert(code.co_argcount, "*")
    if code.co_posonlyargcount:
        texts.insert(code.co_posonlyargcount, "/")
    return ", ".join(texts)


def _optional(one: Observed) -> tuple[str, ...]:
    """Return the arguments that have defaults, if the function is still known by its name."""
    function = one.names.get(one.code.co_name)
    function = inspect.unwrap(function) if callable(function) else None
    if getattr(function, "__code__", None) is not one.code:
        return ()
    count = one.code.co_argcount
    positional = one.arguments[count - len(getattr(function, "__defaults__", None) or ()) : count]
    return (*positional, *(getattr(function, "__kwdefaults__", None) or ()))


# ---- the command --------------------------------------------------------------------------------------
_DESCRIPTION = """Run a script or a module as plain python does, and write a stub of its functions with
annotations for dcarray.program: the types of the arguments that they were called with."""


def main(argv: list[str]) -> int:
    """Run a script or a module, and write the stub; returns the exit status."""
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument(
        "-o", dest="out", type=Path, metavar="FILE", help="where to (default: standard output)"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="a module, as python -m runs it")
    parser.add_argument("target", metavar="script.py", help="the script, or the module's name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    args = parser.parse_args(argv)
    if args.out is not None and not args.out.absolute().parent.is_dir():
        print(f"{_NAME}: there is no folder for {args.out}", file=sys.stderr)
        return 2
    out = None if args.out is None else args.out.absolute()  # the script may change the folder
    watch = Watch()
    sys.argv = [args.target, *args.arguments]

    def begin() -> None:
        threading.setprofile(watch)
        sys.setprofile(watch)

    def end() -> None:
        sys.setprofile(None)
        text = stub(watch.observed(), " ".join([_NAME, *argv]))
        if out is None:
            print(text, end="")
        else:
            out.write_text(text, encoding="utf-8")
            print(f"stub: {out}", file=sys.stderr)

    try:
        execute(args.target, args.module, begin, watch.prepare)
    except Refused as refused:
        message, status = refused.args
        print(f"{_NAME}: {message}", file=sys.stderr)
        return int(status)
    except SystemExit:
        end()
        raise
    except BaseException as error:
        end()  # what was seen was seen
        fail(error)
    end()
    return 0
