"""Tests NumPy's functions with unusual and bad arguments: ``python -m conformance.argument_forms``.

Every line of `conformance.functions` runs again and again, each time with one argument replaced, left out,
added, or given by its name or position instead.  Results, their types, dtypes, shapes and strides, what
arguments hold afterwards, and errors with their texts must be NumPy's.  Arrays are small, recorded however
small, of some 20,000 elements, or (``--sizes ranks``, under ``mpiexec``) distributed over the ranks.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
import resource
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc

from .functions import UNSET, _difference, _Names, _parts, _run, _target, groups, name_of
from .recipes_arrays import arrays

__all__ = ["SIZES", "difference", "main", "variants"]

SIZES = ("small", "recorded", "large", "ranks")
_TEXT = """
None True 0 -1 1 2 7 -9 1.5 'a' () (0,) (-1,) (1,0) (-1,-1) (0,5) [0] [] ... np.int64(1) np.array(1)
np.bool_(1) np.array([1,0]) np.float32 'f4' 'F' 'C' 'K' object 'same_kind' 1j v e x[:,0] x[:0] [v]
"""
_VALUES = _TEXT.split()
_KEYWORDS = "axis dtype out order casting where keepdims array"  # of ufuncs, and of methods
_ASIDE = ("Text, files, dates", "Dtypes")  # they write files, or take no arrays
_TEXT = (
    "nditer nested_iters frompyfunc vectorize empty empty_like from_dlpack dump dumps tofile asmatrix bmat"
)
_UNTRIED = frozenset(_TEXT.split())  # their results or texts are others each time
# Errors by NumPy before dcarray is called, those about which arguments there are, and parameters with more
# meanings here: arrays as dtypes, and devices.
_ELSEWHERE = ("'out' tuple", "dispatcher for", "argument", "wrapper", "a dtype from an array", "Device not")
_MEMORY = 6 << 30


def _call(tree: ast.Module) -> ast.Call | None:
    """Return the call of the function that a line tests."""
    return next((n for n in ast.walk(tree) if isinstance(n, ast.Call) and _target(n.func)), None)


def _parameters(line: str) -> list[str]:
    value: Any = np
    for part in name_of(line).split("."):
        value = getattr(value, part)
    try:
        found = list(inspect.signature(value).parameters)
    except (ValueError, TypeError):
        found = _KEYWORDS.split()
    return [name for name in found if name not in ("self", "args", "kwargs", "subok", "device", "like")]


def variants(line: str) -> Iterator[str]:
    """Yield the variants of a line."""
    names, given = _parameters(line), _call(ast.parse(line))
    if given is None:
        return
    values = [ast.parse(text, mode="eval").body for text in _VALUES]

    def changed(*arguments: Any) -> str:
        tree = ast.parse(line)
        call = _call(tree)
        assert call is not None
        call.args, call.keywords = arguments
        return ast.unparse(tree)

    args, keywords = given.args, given.keywords
    for k, own in enumerate(args):
        rest = [*args[:k], *args[k + 1 :]]
        yield changed(rest, keywords)
        yield from (changed([*args[:k], value, *args[k + 1 :]], keywords) for value in values)
        if k < len(names):
            yield changed(rest, [*keywords, ast.keyword(names[k], own)])
    for k, one in enumerate(keywords):
        others = [*keywords[:k], *keywords[k + 1 :]]
        yield changed([*args, one.value], others)
        yield from (changed(args, [*others, ast.keyword(one.arg, value)]) for value in values)
    taken = {one.arg for one in keywords}
    for value in values:
        yield changed([*args, value], keywords)
        added = [name for name in names[len(args) :] if name not in taken]
        yield from (changed(args, [*keywords, ast.keyword(name, value)]) for name in added)


def _given(size: str) -> dict[str, Any]:
    made = arrays()
    if size == "large":
        made = {k: np.tile(a, (20_000 // a.size, *(1,) * (a.ndim - 1))) for k, a in made.items() if a.ndim}
        made |= {k: a if a.ndim == 0 else np.tile(a, (26, 26)) for k, a in arrays().items() if k in "msehe"}
    return made


def _outcome(line: str, names: dict[str, Any]) -> tuple[Any, str]:
    """Return a line's result, and its error as text."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return _run(line, names), ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}".replace("numpy.ndarray", "ndarray")


def _strides(value: Any) -> Any:
    if isinstance(value, (np.ndarray, dc.ndarray)):
        return tuple(s for s, n in zip(value.strides, value.shape, strict=True) if n > 1 and value.size)
    return [_strides(v) for v in value] if isinstance(value, (tuple, list)) else None


def difference(line: str, size: str) -> str:
    """Return text about what differs in a line from NumPy, or ""."""
    used, given, plain = _parts(line)[2], _given(size), _given(size)
    theirs = {**given, "np": np, "real": np}
    expected, error = _outcome(line, theirs)
    on_ranks = size == "ranks"
    with dc.options(jit="off", **({"eager_below": 0} if size == "recorded" else {})):
        mine = {
            k: dc.distribute(plain[k]) if on_ranks and plain[k].ndim else dc.asarray(plain[k]) for k in used
        }
        if size == "recorded":
            mine = {k: a.copy() for k, a in mine.items()}
        before = dict(mine)
        result, ours = _outcome(line, {**mine, "np": _Names(np, dc) if used else dc, "real": np})
        if "MemoryError" in error + ours or any(text in error for text in _ELSEWHERE):
            return ""
        if ours != error:
            return f"{ours or 'no error'} in place of {error or 'a result'}"
        if error:
            return ""
        if isinstance(result, np.ndarray):  # where NumPy does not ask the elements of sequences
            result = dc.asarray(result)
        said = _difference(result, expected, name_of(line) not in UNSET and "where=" not in line)
        if not said and not on_ranks and _strides(result) != _strides(expected):
            said = f"strides {_strides(result)} in place of {_strides(expected)}"
        for k in used:
            said = said or _difference(mine[k], theirs[k])
            if not said and (result is before[k]) != (expected is given[k]):
                said = f"{k} itself, or not"
    return "" if "are not compared" in said else said


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m conformance.argument_forms")
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=SIZES[:3])
    parser.add_argument("--each", type=int, default=0, help="so many variants of each line, chosen by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="lines with this text")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))  # results of large arrays may be huge
    rng = random.Random(options.seed)
    tried = found = 0
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        every = groups(Path(folder))
    for line in (line for group, lines in every.items() if group not in _ASIDE for line in lines):
        if options.only not in line or name_of(line).split(".")[-1] in _UNTRIED:
            continue
        some = list(dict.fromkeys(variants(line)))
        for variant in rng.sample(some, min(options.each or len(some), len(some))):
            for size in options.sizes:
                tried += 1
                if said := difference(variant, size):
                    found += 1
                    print(f"{size}: {variant}: {said}", flush=True)
    print(f"{tried} calls, {found} differ")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
