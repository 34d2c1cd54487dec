"""Tests each public function of NumPy on dcarray's arrays: ``python -m conformance.functions``.

Every line of `conformance.recipes` and `conformance.recipes_arrays` runs with NumPy's and with dcarray's
arrays, where all operations are recorded, however small.  Results and changes to arguments must be the same;
`dcarray.report` shows whether dcarray or NumPy computed them.  A public function without a line is an error,
so that none is left out.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

import dcarray as dc

from .document import write_section
from .recipes import FUNCTIONS
from .recipes_arrays import LEFT_OUT, METHODS, UNSET, arrays, ufuncs

__all__ = ["Outcome", "groups", "main", "measure", "missing", "name_of"]

KINDS = {
    "native": "recorded, or answered without running anything (views, shapes, dtypes)",
    "numpy": "NumPy's own routine, which is the one that is meant, with a line in the report",
    "at once": "NumPy, or a routine of ours, at once, on the memory or to make an array, without a line",
    "fallback": "NumPy for want of a lowering, with a line; an error with `strict=True`",
    "unsupported": "refused",
    "wrong": "not what NumPy gives",
}
_BAD = ("unsupported", "wrong")
_DISPATCHED = (type(np.sum), np.ufunc)
_ELEMENTS = ("poly", "roots")  # NumPy looks at the elements for who is to serve these, not at the array
_ARRAYS = frozenset(arrays())


@dataclass
class Outcome:
    """The outcome of one line."""

    name: str  # the name of the function, such as ``"linalg.norm"``, ``"add.reduce"`` or ``"ndarray.sum"``
    line: str
    kind: str  # a key of `KINDS`
    said: str = ""  # the lines of the report, the error, or the difference


# ---- lines -------------------------------------------------------------------------------------------
class _Names:
    """The ``np`` of a line: NumPy's functions where these dispatch to dcarray, else dcarray's own."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self._both = theirs, ours

    def __getattr__(self, name: str) -> Any:
        theirs, ours = (getattr(both, name) for both in self._both)
        if isinstance(theirs, ModuleType):
            return _Names(theirs, ours)
        return theirs if isinstance(theirs, _DISPATCHED) and name not in _ELEMENTS else ours


def _target(node: ast.AST) -> str:
    """Return the name of the function of NumPy or method of an array that a node refers to, or ""."""
    if not isinstance(node, ast.Attribute):
        return ""
    names, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name) and inner.id == "np":
        return ".".join(reversed(names))
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    if isinstance(inner, ast.Name) and inner.id in _ARRAYS and len(names) == 1:
        return f"ndarray.{names[0]}"
    return ""


def name_of(line: str) -> str:
    """Return the name of the function that a line tests."""
    return next(found for part in ast.parse(line).body for node in ast.walk(part) if (found := _target(node)))


@cache
def _parts(line: str) -> tuple[CodeType, CodeType, tuple[str, ...]]:
    """Return the code of a line's statements and of its last expression, and the arrays that it names."""
    tree = ast.parse(line)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    used = {node.id for node in ast.walk(last) if isinstance(node, ast.Name)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    first = compile(tree, line, "exec")
    return first, compile(ast.Expression(last.value), line, "eval"), tuple(sorted(used & _ARRAYS))


def _run(line: str, names: dict[str, Any]) -> Any:
    first, last, _ = _parts(line)
    exec(first, names)
    return eval(last, names)


def _surroundings(folder: Path) -> dict[str, Any]:
    """Return the names that a line may use in addition to NumPy and the arrays, with their values."""
    path = folder / "numbers"
    if not path.exists():
        path.write_bytes(bytes(64))
    return {"io": io, "real": np, "file": io.BytesIO(), "path": path, "saved": _saved()}


@cache
def _saved() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(6.0))
    return file.getvalue()


# ---- comparing ---------------------------------------------------------------------------------------
def _difference(ours: Any, theirs: Any, set_values: bool = True) -> str:
    """Return text that says how a result differs from NumPy's, or ""."""
    if type(theirs) is np.ndarray:
        if not isinstance(ours, dc.ndarray):
            return f"{type(ours)} in place of a wrapped array"
        ours = np.asarray(ours)
    elif type(ours) is not type(theirs):
        return f"{type(ours)} in place of {type(theirs)}"
    if isinstance(theirs, (np.ndarray, np.generic)):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return f"{ours.dtype}{list(ours.shape)} in place of {theirs.dtype}{list(theirs.shape)}"
        return "" if not set_values or _alike(ours, theirs) else f"{ours!r} in place of {theirs!r}"
    if isinstance(theirs, (tuple, list)):
        if len(ours) != len(theirs):
            return f"{len(ours)} in place of {len(theirs)} results"
        found = (_difference(a, b, set_values) for a, b in zip(ours, theirs, strict=True))
        return next(filter(None, found), "")
    if isinstance(theirs, (np.poly1d, slice, str, bytes, int, float, complex, dict, type, np.dtype)):
        return "" if bool(ours == theirs) else f"{ours!r} in place of {theirs!r}"
    return "" if theirs is None else f"results of {type(theirs)} are not compared"


def _alike(a: Any, b: Any) -> bool:
    """Whether arrays are equal, floating-point numbers up to rounding."""
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    eps = 64 * float(np.finfo(b.dtype).eps)
    largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
    return bool(np.allclose(a, b, rtol=eps, atol=eps * largest, equal_nan=True))


# ---- measuring ---------------------------------------------------------------------------------------
def _inputs(names: Iterable[str], pending: bool) -> dict[str, Any]:
    """Return dcarray's arrays of some names; pending ones are not computed yet, so that reads are noticed."""
    given = arrays()
    made = {name: dc.asarray(given[name]) for name in names}
    return {name: x.copy() for name, x in made.items()} if pending else made


def _plain(line: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the result of a line with NumPy's arrays, and the names with these arrays."""
    names = {**_surroundings(folder), **arrays(), "np": np}
    return _run(line, names), names


def _attempt(line: str, folder: Path, pending: bool, strict: bool = False) -> tuple[str, str]:
    """Run a line with dcarray's arrays; return the outcome's kind and remark."""
    used = _parts(line)[2]
    expected, before = _plain(line, folder)
    made = _inputs(used, pending)
    dc.report(reset=True)
    dc.evaluate()
    recorded = dc.report(reset=True).statements  # by making the arrays
    made = _inputs(used, pending)
    dc.report(reset=True)
    names = {**_surroundings(folder), **made, "np": _Names(np, dc) if used else dc}
    try:
        with dc.options(strict=strict):
            result = _run(line, names)
            asked = dc.report().flushes > 0
            found = _difference(result, expected, name_of(line) not in UNSET)
            for name in used:
                found = found or _difference(made[name], before[name])
            dc.evaluate()
    except Exception as error:
        return "unsupported", f"{type(error).__name__}: {error}".partition("\n")[0]
    after = dc.report(reset=True)
    for name in used:
        if (result is made[name]) != (expected is before[name]):
            found = found or f"{name} itself, or not"
    if found:
        return "wrong", found
    kinds = {line.kind for line in after.fallbacks}
    if kinds:
        said = ", ".join(sorted({line.function for line in after.fallbacks}))
        return "fallback" if "fallback" in kinds else "numpy", said
    if after.statements > recorded:
        return "native", ""
    return ("at once" if asked or not used else "native"), ""


def measure(line: str, folder: Path, jit: str = "off") -> Outcome:
    """Run a line with NumPy's arrays and dcarray's (pending, pending in strict mode, evaluated); compare.

    Parameters
    ----------
    line : str
        The line, in Python.
    folder : Path
        A folder for files that the line reads or writes.
    jit : str
        The value of dcarray's option ``jit``.
    """
    with dc.options(eager_below=0, jit=jit, strict=False):
        kind, said = _attempt(line, folder, True)
        if kind not in _BAD:
            again = _attempt(line, folder, False)
            strict, error = _attempt(line, folder, True, strict=True)
            if again[0] in _BAD:
                kind, said = again
            elif (strict == "unsupported" and error.startswith("StrictError")) != (kind == "fallback"):
                kind, said = "wrong", f"{kind}, and with strict=True {strict}: {error}"
    return Outcome(name_of(line), line, kind, said)


# ---- everything --------------------------------------------------------------------------------------
def groups(folder: Path) -> dict[str, list[str]]:
    """Return the lines by group, without lines that this version of NumPy cannot run."""

    def accepted(line: str) -> bool:
        try:
            _plain(line, folder)
        except (TypeError, ValueError):
            return False
        return True

    def there(line: str) -> bool:
        value: Any = np
        for part in name_of(line).split("."):
            value = getattr(value, part, None)
        return value is not None

    every = {**FUNCTIONS, **ufuncs(accepted), **METHODS}
    return {
        group: [line for text in lines.splitlines() if (line := text.strip()) and there(line)]
        for group, lines in every.items()
    }


def _public() -> Iterator[str]:
    """Yield the names that must have a line: all of NumPy that can be called or indexed, except dtypes."""
    for module, prefix in ((np, ""), (np.linalg, "linalg."), (np.fft, "fft.")):
        for name in module.__all__:
            value = getattr(module, name)
            aside = isinstance(value, type) and issubclass(value, (np.generic, BaseException))
            if (callable(value) and not aside) or hasattr(type(value), "__getitem__"):
                yield prefix + name
    for name in dir(np.ndarray):
        if not name.startswith("_") or (name.startswith("__") and name not in dir(object)):
            yield f"ndarray.{name}"
    yield from (f"ufunc.{name}" for name in dir(np.ufunc) if not name.startswith("_"))


def missing(lines: Iterable[str]) -> list[str]:
    """Return the public names that no line tests."""
    tried = {name_of(line) for line in lines}
    tried |= {f"ufunc.{name.rpartition('.')[2]}" for name in tried if "." in name}
    left = {name for names in LEFT_OUT.values() for name in names.split()}
    return sorted({*_public()} - tried - left)


# ---- the command -------------------------------------------------------------------------------------
def _lists(outcomes: list[Outcome], kinds: dict[str, set[str]]) -> list[str]:
    """Return a Markdown list of the kinds in a group, each with its functions, or lines if these differ."""
    text = []
    for kind in KINDS:
        some = [o for o in outcomes if o.kind == kind]
        shown = (o.name if len(kinds[o.name]) == 1 or kind == "native" else o.line for o in some)
        names = [f"`{name.removeprefix('ndarray.')}`" for name in dict.fromkeys(shown)]
        if kind in _BAD:
            names = [f"`{o.line}` ({o.said})" for o in some]
        elif len(names) > 30 and len(some) == len(outcomes):
            names = [f"all {len(names)}"]
        if names:
            text.append(f"* {kind}: {', '.join(names)}")
    return text


def _all_lists(found: dict[str, list[Outcome]]) -> dict[str, list[str]]:
    kinds: dict[str, set[str]] = {}
    for o in (o for some in found.values() for o in some):
        kinds.setdefault(o.name, set()).add(o.kind)
    return {group: _lists(some, kinds) for group, some in found.items()}


def _counts(found: dict[str, list[Outcome]]) -> list[list[str]]:
    """Return a row of counts for each group: functions, lines, and lines by kind."""
    rows = []
    for group, outcomes in (*found.items(), ("all", [o for some in found.values() for o in some])):
        kinds = Counter(o.kind for o in outcomes)
        numbers = [len({o.name for o in outcomes}), len(outcomes), *(kinds[kind] for kind in KINDS)]
        rows.append([group, *map(str, numbers)])
    return rows


_ABOUT = """\
    python -m conformance.functions [--jit off|eager] [--json FILE] [--docs docs/conformance.md]

wrote this section.  For every public function of NumPy, of `numpy.linalg` and `numpy.fft`, every ufunc and
its methods, every method, attribute and operator of arrays, there is a line of Python, or some, in
`conformance/recipes.py` and `recipes_arrays.py`, where it also says what `x`, `i` or `b` is.  It runs with
plain and with wrapped arrays, which are pending, or have their values.  Everything is recorded, however small
(`eager_below=0`).  Results, and arrays afterwards, must have NumPy's types, shapes, dtypes and values, and
`dc.report()` says who served the call.  Functions that NumPy dispatches are NumPy's own.  The others are
those of `dcarray`: most of them make arrays from nothing, and for `poly` and `roots` NumPy asks the elements
of the array instead of the array.  The command fails where a result is wrong, where the report and
`strict=True` contradict each other, and where a public function has no line.
"""


def _section(found: dict[str, list[Outcome]], jit: str) -> str:
    """Return the document's section on functions."""
    kinds = [f"* *{kind}*: {what}" for kind, what in KINDS.items()]
    rows = [" | ".join(row) for row in _counts(found)]
    table = [f"| group | functions | lines | {' | '.join(KINDS)} |", "|---|" + "--:|" * (2 + len(KINDS))]
    table += [f"| {row} |" for row in rows]
    lists = [part for group, some in _all_lists(found).items() for part in ("", f"**{group}**", "", *some)]
    left = [f"* {why}: {', '.join(f'`{n}`' for n in names.split())}" for why, names in LEFT_OUT.items()]
    where = f"NumPy {np.__version__}, Python {sys.version.split()[0]}, `jit='{jit}'`."
    text = [_ABOUT, *kinds, "", *table, "", where, *lists, "", "**Left out**", "", *left]
    return "\n".join(text)


def _table(found: dict[str, list[Outcome]]) -> str:
    """Return a table of the counts as text."""
    rows = [["", "functions", "lines", *KINDS], *_counts(found)]
    return "\n".join(f"{row[0]:<32}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status.

    Returns
    -------
    int
        0 if every function has a line and all results are right, else 1.
    """
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m conformance.functions", description=about)
    parser.add_argument("--jit", choices=("off", "eager"), default="eager", help="interpret or compile")
    parser.add_argument("--json", type=Path, help="file for the outcomes")
    parser.add_argument("--docs", type=Path, help="document whose section on functions is written anew")
    given = parser.parse_args(arguments)
    found: dict[str, list[Outcome]] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for group, lines in groups(Path(folder)).items():
            found[group] = [measure(line, Path(folder), given.jit) for line in lines]
    for group, lists in _all_lists(found).items():
        print(f"\n{group}", *lists, sep="\n  ")
    print(f"\n{_table(found)}")
    outcomes = [o for some in found.values() for o in some]
    untried = missing(o.line for o in outcomes)
    if untried:
        print("\nwithout a line:", *untried, sep="\n  ")
    if given.json:
        document = {group: [asdict(o) for o in some] for group, some in found.items()}
        given.json.write_text(json.dumps(document, indent=1) + "\n")
    if given.docs:
        write_section(given.docs, "Functions", _section(found, given.jit))
    return int(bool(untried) or any(o.kind == "wrong" for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
