"""Stub files: functions with the types of their arguments that were observed in a run, as text."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .hint_types import Observed, types_of

__all__ = ["stub"]

SHOWN = 0.1  # seconds from which on a stub has them
_INDENT = "    "


@dataclass(slots=True)
class _Scope:
    """A class or function in a stub file: its lines without indentation, and its inner classes and
    functions."""

    is_class: bool
    lines: list[str] = field(default_factory=list)
    inner: dict[str, _Scope] = field(default_factory=dict)

    def at(self, qualname: str) -> _Scope:
        """Return the scope with a qualified name; it and the scopes around it are made if they are
        missing."""
        scope = self
        names = qualname.split(".")
        for k, name in enumerate(names):
            if name != "<locals>":
                is_class = k + 1 < len(names) and names[k + 1] != "<locals>"
                scope = scope.inner.setdefault(name, _Scope(is_class))
        return scope

    def text(self, name: str, depth: int = 0) -> list[str]:
        """Return the lines of a scope in the stub, indented."""
        before = _INDENT * depth
        inner = [line for key, one in self.inner.items() for line in one.text(key, depth + bool(name))]
        if not name:
            return inner
        head = self.lines or (
            [f"class {name}: ..."] if self.is_class else [f"def {name}(*args, **kwargs): ..."]
        )
        if not inner:
            return [before + line for line in head]
        if head[-1].startswith("#"):  # it has no types, but what is in it may
            head = [*head, f"def {name}(*args, **kwargs): ..."]
        last = head[-1].replace(": ...", ":", 1) if ": ...  #" in head[-1] else head[-1].removesuffix(" ...")
        inner += (
            [] if any(not line.lstrip().startswith("#") for line in inner) else [before + _INDENT + "..."]
        )
        return [*[before + line for line in head[:-1]], before + last, *inner]


def stub(functions: Iterable[Observed], command: str) -> str:
    """Return the text of a stub file; "" if it would be empty.  A function that `dcarray.program` can compile
    is listed with its annotations; any other is a comment with the reason.

    Parameters
    ----------
    functions : iterable of Observed
        The functions; those without arrays and numbers are left out.
    command : str
        The command that made the stub, for its first line.
    """
    texts: list[str] = []
    symbols: dict[str, None] = {}
    files: dict[str, _Scope] = {}
    for one in functions:
        if one.is_told:
            whole = files.setdefault(one.code.co_filename, _Scope(True))
            lines, names = _lines(one)
            whole.at(one.code.co_qualname).lines += lines
            symbols.update(dict.fromkeys(names))
    for file, whole in files.items():
        texts += ["", f"# {os.path.relpath(file)}", *whole.text("")]
    if not texts:
        return ""
    head = [
        f"# Types of arguments that were seen by: {command}",
        "import numpy as np",
        "",
        "import dcarray as dc",
    ]
    sizes = [f'{name} = dc.symbol("{name}")' for name in symbols]
    return "\n".join([*head, *([""] if sizes else []), *sizes, *texts]) + "\n"


def _lines(one: Observed) -> tuple[list[str], Sequence[str]]:
    """Return the lines of a function in the stub, and the names of sizes in them."""
    types, reasons, names = types_of(one)
    code = one.code
    what = f"line {code.co_firstlineno}, {one.calls} call{'s' if one.calls > 1 else ''}"
    what += f", {one.seconds:.2g} s" if one.seconds >= SHOWN else ""
    header = f"def {code.co_name}({_parameters(one, types)}): ..."
    if reasons:
        why = "; ".join(f"{name} was {reason}" for name, reason in reasons.items())
        return [f"# {header}  # {what}: no program, since {why}"], ()
    if one.owner == "self":
        kind = code.co_qualname.split(".")[-2]
        parts = [f"self.{part}: {types[f'self.{part}']}" for part in one.parts if f"self.{part}" in types]
        what += f"; {code.co_varnames[0]}: {kind}" + (f" with {', '.join(parts)}" if parts else "")
    is_static = (
        not one.owner and code.co_qualname.count(".") and "<locals>" not in code.co_qualname.split(".")[-2]
    )
    decorator = ["@classmethod"] if one.owner == "cls" else ["@staticmethod"] if is_static else []
    return [*decorator, f"{header}  # {what}"], names


def _parameters(one: Observed, types: dict[str, str]) -> str:
    code, optional = one.code, set(_optional(one))
    texts = [code.co_varnames[0]] if one.owner else []
    for name in one.arguments:
        text = f"{name}: {types[name]}" if name in types else name
        texts.append(f"{text} = ..." if name in optional else text)
    if code.co_kwonlyargcount:
        texts.insert(code.co_argcount, "*")
    if code.co_posonlyargcount:
        texts.insert(code.co_posonlyargcount, "/")
    return ", ".join(texts)


def _optional(one: Observed) -> tuple[str, ...]:
    """Return the arguments that have defaults; none if the function is not found by its name any more."""
    function: Any = one.names
    for name in one.code.co_qualname.split("."):
        space = function if isinstance(function, dict) else getattr(function, "__dict__", {})
        function = space.get(name)
    function = getattr(function, "__func__", function)
    function = inspect.unwrap(function) if callable(function) else None
    code = one.code
    if getattr(function, "__code__", None) is not code:
        return ()
    count = code.co_argcount
    positional = code.co_varnames[count - len(getattr(function, "__defaults__", None) or ()) : count]
    return (*positional, *(getattr(function, "__kwdefaults__", None) or ()))
