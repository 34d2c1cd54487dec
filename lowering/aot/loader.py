"""The Python loader of a library: a module with the same functions, which imports nothing but NumPy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dcarray.ir import dims
from dcarray.ir.nodes import Dim

from .interface import STATUSES, Function, Parameter

_HEAD = '"""Functions that dcarray compiled ahead of time, from lib{stem}.so beside this file."""\n\n'
_TAIL = """

import os

_LIBRARY = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib{stem}.so"))
_STATUSES = (
    {statuses},
)


{functions}


_FUNCTIONS = {{
{table}
}}
"""


def loader_text(functions: tuple[Function, ...], stem: str) -> str:
    """Return the text of the module."""
    runtime = Path(__file__).with_name("loader_runtime.py").read_text(encoding="utf-8")
    text = runtime[runtime.index("from __future__") :]
    head = _HEAD.format(stem=stem)
    tail = _TAIL.format(
        stem=stem,
        statuses=",\n    ".join(map(repr, STATUSES)),
        functions="\n\n\n".join(map(_definition, functions)),
        table="\n".join(map(_entry, functions)),
    )
    return head + text + tail


def _definition(function: Function) -> str:
    first = len(function.parameters) - function.keywords
    head = []
    for k, p in enumerate(function.parameters):
        if k == first:
            head.append("*")
        head.append(f"{p.name}={p.default}" if p.default else p.name)
    given = "".join(f"{p.name}, " for p in function.parameters)
    return (
        f"def {function.name}({', '.join(head)}):\n"
        f'    """{_summary(function)}"""\n'
        f'    return _run(_LIBRARY, _STATUSES, "{function.name}", _FUNCTIONS["{function.name}"], ({given}))'
    )


def _summary(function: Function) -> str:
    shapes = [f"{p.name}: {p.dtype.name}{_shape(p)}" for p in function.parameters]
    return f"Call the compiled function; {', '.join(shapes)}." if shapes else "Call the compiled function."


def _shape(p: Parameter) -> str:
    return f"[{', '.join(map(dims.show, p.shape))}]" if p.kind == "array" else ""


def _entry(function: Function) -> str:
    arrays = {array.name: array for array in function.region.arrays}
    parameters = [
        (p.kind, p.name, p.symbol, p.dtype.str[1:], len(p.shape), p.written) for p in function.parameters
    ]
    symbols = [symbol.name for symbol in function.region.symbols]
    solve, shapes = [], []
    for p in function.parameters:
        if p.kind != "array":
            continue
        shapes.append(_function(p.name, p.shape, symbols))
        for axis, extent in enumerate(p.shape):
            names = dims.free_symbols(extent)
            if len(names) == 1 and dims.is_number(dims.slope(extent, *names) or 0, 1):
                (name,) = names
                solve.append((name, p.name, axis, dims.substitute(extent, {name: 0})))
    results: list[tuple[str, Any, str, bool]] = []
    for result in function.results:
        if result.kind in ("array", "scalar"):
            array = arrays[result.name]
            results.append((result.kind, f"-{result.name}", array.dtype.str[1:], result.python))
            if result.kind == "array":
                shapes.append(_function(f"-{result.name}", array.shape, symbols))
        else:
            what = result.name if result.kind == "alias" else result.value
            results.append((result.kind, what, "", False))
    table = f"{function.sizes!r}, {parameters!r}, {solve!r}, {{{', '.join(shapes)}}}, {results!r}"
    return f'    "{function.name}": _Entry({table}, {function.several!r}),'


def _function(name: str, shape: tuple[Dim, ...], symbols: list[str]) -> str:
    """Return the text of a dict's item: ``name`` and a lambda from the values of symbols to a shape."""
    values = {symbol: f"v[{symbol!r}]" for symbol in symbols}
    texts = [
        re.sub(r"[A-Za-z_]\w*", lambda word: values.get(word.group(), word.group()), dims.show(extent))
        for extent in shape
    ]
    return f"{name!r}: lambda v: ({''.join(f'{text}, ' for text in texts)})"
