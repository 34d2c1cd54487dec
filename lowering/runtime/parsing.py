"""Syntax trees of source texts, made by one thread at a time."""

from __future__ import annotations

import ast
import gc
import threading

from .forks import held_in_forks

__all__ = ["parse"]

_LOCK = held_in_forks(threading.RLock())


def parse(text: str | bytes, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module's text, as `ast.parse`.

    CPython 3.11 counts the depth of all trees that are being made in one place, so one fails if another one
    is begun meanwhile, and not ended ("AST constructor recursion depth mismatch").  Other threads run
    meanwhile only where garbage is collected.
    """
    with _LOCK:
        collects = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(text, file)
        finally:
            if collects:
                gc.enable()
