"""Reduction of a program that differs: removes superfluous statements, and blocks around others."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator

from .writer import HEAD

__all__ = ["reduced"]

Change = tuple[tuple[int, str], int, int]  # of which block, and which of its statements


def _blocks(tree: ast.Module) -> dict[tuple[int, str], list[ast.stmt]]:
    """Return a program's lists of statements, by the number of their node in ``ast.walk``, and the field."""
    found = {}
    for number, node in enumerate(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                found[number, field] = block
    return found


def _without(source: str, change: Change, unwrap: bool) -> str | None:
    """Return the program without some statements, or with a block replaced by its statements; or None."""
    tree = ast.parse(source)
    key, start, stop = change
    block = _blocks(tree).get(key)
    if block is None or start >= len(block):
        return None
    new = getattr(block[start], "body", None) if unwrap else []
    if new is None or (isinstance(block[start], ast.FunctionDef | ast.ClassDef) and unwrap):
        return None
    block[start:stop] = new
    if not block and key[1] == "body":
        block.append(ast.Pass())
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        compile(text, "<smaller>", "exec")
    except SyntaxError:
        return None
    return None if text == ast.unparse(ast.parse(source)) else text


def _changes(source: str, size: int, of_main: bool) -> Iterator[Change]:
    """Yield sequences of ``size`` statements, of outer blocks first; or only those of ``main``."""
    tree = ast.parse(source)
    defined = [k for k, node in enumerate(tree.body, 1) if isinstance(node, ast.FunctionDef)]
    for key, block in _blocks(tree).items():
        if of_main and key[0] not in defined[-1:]:  # a walk gives the module, and then what is right in it
            continue
        for start in reversed(range(0, len(block), size)):
            yield key, start, start + size


def reduced(source: str, differs: Callable[[str], bool], seconds: float = 120) -> str:
    """Return a smaller program that still differs.

    Parameters
    ----------
    source : str
    differs : callable
        Whether a program differs.
    seconds : float
        After this time no more is left out.
    """
    head, _, rest = source.partition(HEAD)
    end = time.monotonic() + seconds
    before = None
    while before != rest:
        before = rest
        steps = ((1, False, True), (8, False, False), (3, False, False), (1, False, False), (1, True, False))
        for size, unwrap, of_main in steps:
            for change in list(_changes(rest, size, of_main)):
                smaller = _without(rest, change, unwrap)
                if time.monotonic() > end:
                    return head + HEAD + rest
                if smaller is not None and differs(f"{head}{HEAD}\n\n{smaller}\n"):
                    rest = f"\n\n{smaller}\n"
    return head + HEAD + rest
