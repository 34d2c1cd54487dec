"""Array programs as data: lines of Python that run with NumPy's and dcarray's arrays and are compared.

A program has a body and rounds.  Each round creates the arrays and scalars that the body uses, so that the
same statements run with different sizes, dtypes, strides, aliases and values.  Every line must raise and warn
the same in both ways, and after every round all variables must be equal: bit for bit, except for "rough"
ones, whose last bits depend on the order of additions or on a mathematical library.
"""

from __future__ import annotations

import copy
import pickle
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import numpy as np

import dcarray as dc

__all__ = ["Judge", "Program", "data", "difference", "shrunk", "suits_devices"]

Variables = dict[str, Any]
_SIGNS = re.compile(r"(np\.(?:signbit|copysign|arctan2))\(")
_PRODUCTS = ("@", "dot", "matmul", "einsum", "inner", "outer", "kron", "convolve", "cross", "cov", "fft")
_LOOSE = {"e": 40.0, "f": 1000.0, "F": 1000.0, "d": 4000.0, "D": 4000.0, "g": 4000.0, "G": 4000.0}


@dataclass(frozen=True)
class Program:
    """A program: lines of Python, and rounds of inputs."""

    body: tuple[str, ...]  # statements; each runs even if the one before has raised
    rounds: tuple[tuple[str, ...], ...]  # for each round, the statements that create the inputs of the body
    rough: frozenset[str] = frozenset()  # variables that are compared with a tolerance
    face: str = "numpy"  # the module that ``np`` is for dcarray's arrays: ``"numpy"`` or ``"dcarray"``

    def text(self, **mode: Any) -> str:
        """Return a script that reproduces the difference."""
        rounds = "".join(f"        {_tuple(lines, 8)},\n" for lines in self.rounds)
        used = " ".join((*self.body, *(line for lines in self.rounds for line in lines)))
        rough = ", ".join(repr(name) for name in sorted(self.rough) if name in used)
        options = "".join(f", {name}={value!r}" for name, value in mode.items())
        return (
            "from conformance.programs import Program, difference\n\n"
            f"program = Program(\n    body={_tuple(self.body, 4)},\n    rounds=(\n{rounds}    ),\n"
            f"    rough=frozenset({{{rough}}}),\n    face={self.face!r},\n)\n"
            f"print(difference(program{options}))\n"
        ).replace("frozenset({})", "frozenset()")


def _tuple(lines: tuple[str, ...], indent: int) -> str:
    return "(\n" + "".join(f"{' ' * (indent + 4)}{line!r},\n" for line in lines) + " " * indent + ")"


# ---- arrays ------------------------------------------------------------------------------------------
def data(dtype: str, shape: tuple[int, ...], seed: int, layout: str = "C") -> Any:
    """Return a NumPy array of small values (multiples of 0.5, some NaN, infinities and negative zeros).

    Parameters
    ----------
    dtype : str
    shape : tuple of int
    seed : int
    layout : str
        ``C``, ``F``, ``step`` (gaps in memory), ``flip`` (backwards), ``inner`` (within a larger array),
        ``wide`` (broadcast, read only) or ``odd`` (not aligned).
    """
    kind = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    full = shape[:-1] + (1,) if layout == "wide" and shape else shape
    a: Any = np.asarray(rng.integers(0 if kind.kind in "uSM" else -8, 9, full))
    if kind.kind in "fc":
        a = a * 0.5
        if seed % 3 == 0:
            special = np.asarray(rng.choice([np.nan, np.inf, -np.inf, -0.0], full))
            a = np.where(np.asarray(rng.random(full)) < 0.2, special, a)
    if kind.kind == "c":
        a = a + 0.5j * np.asarray(rng.integers(-4, 5, full))
    a = np.asarray(a).astype(kind)
    if layout == "wide":
        return np.broadcast_to(a, shape)
    if layout == "F":
        return np.array(a, order="F")
    if layout == "odd" and not kind.hasobject:
        raw = np.zeros(a.nbytes + 1, np.uint8)
        b = raw[1:].view(kind).reshape(shape)
    elif layout in ("step", "flip", "inner") and shape:
        key = {"step": np.s_[1 : 2 * shape[-1] + 1 : 2], "flip": np.s_[: shape[-1]], "inner": np.s_[1:-1]}[
            layout
        ]
        extra = {"step": shape[-1] + 2, "flip": 0, "inner": 2}[layout]
        b = np.zeros((*shape[:-1], shape[-1] + extra), kind)[..., key]
        b = b[..., ::-1] if layout == "flip" else b
    else:
        return a
    b[...] = a
    return b


# ---- running -----------------------------------------------------------------------------------------
def in_thread(work: Callable[[], Any]) -> Any:
    """Return the result of ``work`` in a new thread."""
    done: list[Any] = []

    def run() -> None:
        try:
            done.append((work(), None))
        except Exception as error:
            done.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    value, error = done[0]
    if error is not None:
        raise error
    return value


def nans(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with arguments converted so that every NaN has the same sign."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_positive, args), **kwargs)

    return call


def signless(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with arguments converted so that NaNs and zeros have the same sign."""
    steady = nans(function)
    return lambda *args, **kwargs: steady(*(x + 0.0 if _is_real(x) else x for x in args), **kwargs)


def _is_real(a: Any) -> bool:
    return bool(getattr(a, "dtype", np.dtype("O")).kind == "f")


def _positive(a: Any) -> Any:
    return np.where(np.isnan(a), np.nan, a) if _is_real(a) else a


def scope(program: Program, wrapped: bool) -> Variables:
    """Return the initial variables of a program's lines, for NumPy's or dcarray's arrays."""
    names: Variables = {"plain": data, "in_thread": in_thread, "pickle": pickle, "copy": copy}
    names |= {"nans": nans, "signless": signless}
    if not wrapped:
        same = lambda a: a  # noqa: E731
        return {**names, "np": np, "data": data, "wrap": same, "export": same, "evaluate": same}
    return {
        **names,
        "np": dc if program.face == "dcarray" else np,
        "data": lambda *made: dc.asarray(data(*made)),
        "wrap": dc.asarray,
        "export": lambda a: np.asarray(a) if isinstance(a, dc.ndarray) else a,
        "evaluate": dc.evaluate,
    }


_codes: dict[str, CodeType] = {}


def compiled(line: str) -> CodeType:
    """Return the code object of a line, from a cache."""
    code = _codes.get(line)
    if code is None:
        if len(_codes) > 5000:
            _codes.clear()
        code = _codes[line] = compile(line, "<program>", "exec")
    return code


def perform(program: Program, wrapped: bool, heard: bool = True) -> Iterator[tuple[list[Any], Variables]]:
    """Run a program; yield for each round the errors and warnings of every line, and the variables."""
    common = scope(program, wrapped)
    for inputs in program.rounds:
        names = dict(common)
        events = []
        for line in (*inputs, *program.body):
            with warnings.catch_warnings(record=True) if heard else nullcontext([]) as caught:
                if heard:
                    warnings.simplefilter("always")
                try:
                    exec(compiled(line), names)
                    raised = None
                except Exception as error:
                    raised = type(error).__name__
            # that messages keep changing is said of ranks, not of a line
            told = [w for w in caught if w.category is not dc.comm.PerformanceWarning]
            said = set() if raised else {f"{w.category.__name__}: {w.message}" for w in told}
            events.append((line, raised, said))
        yield events, {k: v for k, v in names.items() if k not in common and not k.startswith("__")}


def difference(program: Program, heard: bool = True, **mode: Any) -> str | None:
    """Return the first difference between runs with dcarray's and NumPy's arrays as text, or None.

    Programs with undefined results never differ: those that cast numbers to integers which cannot hold them
    (NumPy's result depends on the processor and on strides), or use the sign of a NaN or of the larger zero.

    Parameters
    ----------
    program : Program
    heard : bool
        Whether warnings are compared, which threads that take turns cannot tell apart.
    **mode
        Options of `dcarray.options` for the wrapped arrays.
    """
    text = _difference(program, mode, heard)
    if text is None or _is_undefined(program):
        return None
    way = "signless" if _is_unsigned(program) else "nans"
    unsigned = replace(program, body=tuple(_SIGNS.sub(rf"{way}(\1)(", line) for line in program.body))
    return text if unsigned == program else _difference(unsigned, mode, heard)


def _is_unsigned(program: Program) -> bool:
    """Whether the sign of a zero depends on an order of operations that NumPy does not define."""
    return any(word in line for line in program.body for word in ("max", "min", "clip", "sort", "np.sign("))


def _is_undefined(program: Program) -> bool:
    with np.errstate(all="ignore", invalid="warn"):
        said = (s for events, _ in perform(program, False) for _, _, lines in events for s in lines)
        return any("encountered in cast" in line for line in said)


def _difference(program: Program, mode: dict[str, Any], heard: bool) -> str | None:
    with np.errstate(all="ignore"), dc.options(**mode):
        ours = perform(program, True, heard)
        for number, (events, want) in enumerate(perform(program, False, heard)):
            done, got = next(ours)
            for one, other in zip(events, done, strict=True):
                if one != other:
                    return f"round {number}: {one[0]!r}: {_event(other)}, not {_event(one)}"
            if want.keys() != got.keys():
                return f"round {number}: variables {sorted(want.keys() ^ got.keys())}"
            judge = Judge.of(program, want)
            for name, value in want.items():
                try:
                    text = judge.differs(value, got[name], name in program.rough)
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"
                if text is not None:
                    return f"round {number}: {name} {text}"
    return None


def _event(event: Any) -> str:
    _, raised, said = event
    return " and ".join(filter(None, (raised, *sorted(said)))) or "nothing raised"


# ---- judging -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Judge:
    """The comparison of values of a program."""

    scale: float  # the largest finite number in the variables: errors of rough variables are relative to it
    # Whether there are infinities or NaN, and sums of products: libraries may skip products with zero.
    wild: bool
    # Whether the sign of a zero or NaN depends on an order of operations that NumPy does not define.
    unsigned: bool

    @classmethod
    def of(cls, program: Program, variables: Variables) -> Judge:
        """Return the judge for a program, given the variables that it has after a run on NumPy's arrays."""
        found = [
            v for v in variables.values() if isinstance(v, np.ndarray | np.generic) and v.dtype.kind in "fc"
        ]
        sizes = [np.abs(v) for v in found if v.size]
        scale = max([1.0, *(float(np.max(s, where=np.isfinite(s), initial=0)) for s in sizes)])
        text = "\n".join(program.body)
        wild = any(w in text for w in _PRODUCTS) and not all(np.all(np.isfinite(s)) for s in sizes)
        return cls(scale, wild, _is_unsigned(program))

    def differs(self, want: Any, got: Any, rough: bool) -> str | None:
        """Return text that says how two values differ, or None."""
        if type(want) is np.ndarray:
            if not isinstance(got, dc.ndarray | np.ndarray):
                return f"is a {type(got)} for an array"
            got = np.asarray(got)
        elif type(want) is not type(got):
            return f"is a {type(got)}, not a {type(want)}"
        if isinstance(want, list | tuple):
            if len(want) != len(got):
                return f"has {len(got)} items, not {len(want)}"
            found = (self.differs(a, b, rough) for a, b in zip(want, got, strict=True))
            return next((text for text in found if text is not None), None)
        if not isinstance(want, np.ndarray | np.generic | int | float | complex):
            return None if want == got or want is got else f"is {got!r}, not {want!r}"
        a, b = np.asarray(want), np.asarray(got)
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"is {b.dtype} {b.shape}, not {a.dtype} {a.shape}"
        if self.same(a, b, rough):
            return None
        where = next(k for k in np.ndindex(a.shape) if not self.same(a[k], b[k], rough))
        return f"is {b[where]!r} at {where}, not {a[where]!r}"

    def same(self, a: Any, b: Any, rough: bool) -> bool:
        """Whether arrays of one shape and dtype are equal, up to the tolerance if they are rough."""
        if a.dtype.kind not in "fc":
            return bool(np.all(a == b)) if a.dtype.kind in "biu" else repr(a) == repr(b)
        if a.dtype.kind == "c":
            lost = (np.isnan(a) & np.isnan(b)) | (rough & ~np.isfinite(a) & ~np.isfinite(b))
            a, b = (np.where(lost, 0, x) for x in (a, b))  # which part is the NaN?
            return all(self.same(getattr(a, k), getattr(b, k), rough) for k in ("real", "imag"))
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        if not (rough or self.unsigned):
            equal &= (np.signbit(a) == np.signbit(b)) | (a != 0)
        if rough:
            limits = np.finfo(a.dtype)
            near = _LOOSE[a.dtype.char] * float(limits.eps) * self.scale
            with np.errstate(all="ignore"):
                equal |= np.abs(a - b) <= near
                # where the range ends, rounding decides between numbers and infinities
                most = float(limits.max) / 1e3
                if self.wild or self.scale >= most:
                    equal |= ~(np.abs(a) < most) | ~(np.abs(b) < most)
        return bool(np.all(equal))


# ---- shrinking ---------------------------------------------------------------------------------------
def suits_devices(program: Program) -> bool:
    """Whether a program has the same results on a device as with NumPy.

    It may not if it uses read-only arrays (their copies on a device can be written) or ``np.errstate``
    (devices give no warnings).
    """
    read_only = any("'wide'" in line for lines in program.rounds for line in lines)
    return not read_only and not any("errstate" in line for line in program.body)


def shrunk(program: Program, **mode: Any) -> Program:
    """Return a smaller program that still differs, without superfluous rounds, lines and sizes."""

    def differs(candidate: Program) -> bool:
        return difference(candidate, **mode) is not None

    before = None
    while before != program:
        before = program
        for k in reversed(range(len(program.rounds))):
            if len(program.rounds) > 1:
                program = _better(program, replace(program, rounds=_without(program.rounds, k)), differs)
        for k in reversed(range(len(program.body))):
            program = _better(program, replace(program, body=_without(program.body, k)), differs)
        for r in range(len(program.rounds)):
            for k in reversed(range(len(program.rounds[r]))):
                lines = _without(program.rounds[r], k)
                rounds = (*program.rounds[:r], lines, *program.rounds[r + 1 :])
                program = _better(program, replace(program, rounds=rounds), differs)
    return program


def _without(items: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    return items[:k] + items[k + 1 :]


def _better(program: Program, candidate: Program, differs: Callable[[Program], bool]) -> Program:
    return candidate if differs(candidate) else program
