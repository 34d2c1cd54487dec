"""The verified source of a function or lambda; of a lambda, as a ``def``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType

from dcarray.lowering.runtime.parsing import parse

from .private_names import class_around, mangle
from .source import Source, source_of, unwarned

__all__ = ["inlined_source"]

_NAME = "function"  # of a lambda, in messages
_KNOWN = 64  # files whose lambdas are known


def inlined_source(function: FunctionType, code: CodeType) -> Source | None:
    """Return the source of a function with this code object, a lambda's as the equivalent ``def``; None if it
    cannot be verified."""
    return source_of(function, code) if code.co_name != "<lambda>" else _lambda_source(function, code)


def _lambda_source(function: FunctionType, code: CodeType) -> Source | None:
    """Return the source of a lambda expression as a function's; None if its file has several alike."""
    import linecache

    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    nodes = [
        node
        for node, own in _lambdas(text, code.co_filename)
        if own == code and (own.co_linetable, own.co_freevars) == (code.co_linetable, code.co_freevars)
    ]
    if len(nodes) != 1:
        return None
    mangle(nodes[0], class_around(code.co_qualname))
    spec, body = ast.unparse(nodes[0].args), ast.unparse(nodes[0].body)
    definition = f"def {_NAME}({spec}):\n    return {body}"
    (tree,) = parse(definition).body
    assert isinstance(tree, ast.FunctionDef)
    return Source(tree, tuple(definition.splitlines(keepends=True)), 1, code, ())


@lru_cache(maxsize=_KNOWN)
def _lambdas(text: str, file: str) -> list[tuple[ast.Lambda, CodeType]]:
    """Return the lambdas of a file with their code objects, compiled anew."""
    try:
        tree = parse(text, file)
        with unwarned():
            codes = [*_codes(compile(tree, file, "exec", dont_inherit=True))]
    except (SyntaxError, ValueError, RecursionError):
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    pairs: list[tuple[ast.Lambda, CodeType]] = []
    for code in codes:
        at = _end_of_body(code)
        there = [n for n in nodes if (n.body.end_lineno, n.body.end_col_offset) == at]
        there = [n for n in there if n.lineno == code.co_firstlineno]
        pairs += [(node, code) for node in there[-1:] if len(there) == 1]
    return pairs


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects of lambdas."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_name == "<lambda>":
                yield inner
            yield from _codes(inner)


def _end_of_body(code: CodeType) -> tuple[int | None, int | None] | None:
    """Return the line and column where the value that a lambda returns ends."""
    places = [(end, column) for _, end, _, column in code.co_positions() if column is not None]
    return max(places, default=None, key=lambda place: (place[0] or 0, place[1] or 0))
