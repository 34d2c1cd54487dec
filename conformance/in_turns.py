"""Measures a program run in several ways, called in turn in one process, and compares the results."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

__all__ = ["Way", "copied", "difference", "seed", "take_turns"]

_CALLS = 2000  # at most, of each way
_LEAST = 3  # turns once nothing is left to compile, unless they take very long


class Way(Protocol):
    """One way to run a program: as it is, accelerated, or compiled by another compiler (a peer)."""

    def call(self) -> float:
        """Call the program once, with the same arguments each time, and return the seconds."""

    def result(self) -> Any:
        """Return a copy (see `copied`) of the result of the last call, or of one more call, untimed."""


def take_turns(
    plain: Way, accelerated: Way, peer: Callable[[], Way] | None = None, seconds: float = 3.0
) -> dict[str, Any]:
    """Call a program repeatedly: as it is, accelerated, and compiled by a peer, if there is one.

    Parameters
    ----------
    plain, accelerated : Way
    peer : callable, optional
        Returns the peer's way; called after the first calls of the others.
    seconds : float
        How long to repeat the calls.

    Returns
    -------
    dict
        ``milliseconds``: the time of plain Python.  ``first``: the speed-up of the first accelerated call,
        compared with the plain calls before and after it.  ``settled``, ``peer``: speed-ups of later calls,
        by the least times, which are most reliable on a busy machine.  ``loops``: how many loops and
        statements ran compiled, with ``reasons`` of others.  ``differs``: where results differ.
    """
    first = _called(plain)  # raises if it cannot be run as it is
    try:
        return _taken(plain, accelerated, peer, seconds, first)
    except Exception as error:  # whatever the accelerated one does that the plain one does not
        return {"differs": f"raises {type(error).__name__}: {error}".splitlines()[0], "reasons": []}


def _taken(
    plain: Way, accelerated: Way, peer: Callable[[], Way] | None, seconds: float, started: float
) -> dict[str, Any]:
    import dcarray

    first = _called(accelerated)
    usual = [started, _called(plain)]
    beside = sum(usual) / 2
    differs = _difference(plain, accelerated)
    other: Way | None = None
    failed = ""
    if peer is not None:
        try:
            other = peer()
            other.call()
        except Exception as error:  # whatever it does not take
            other, failed = None, f"{type(error).__name__}: {error}".splitlines()[0]
    ways = [plain, accelerated, *([other] if other is not None else [])]
    times: list[list[float]] = []
    half = time.perf_counter() + seconds / 2
    while len(times) < _CALLS and time.perf_counter() < half:
        times.append([_called(way) for way in ways])
    dcarray.wait(60)
    usual += [turn[0] for turn in times]
    settled: list[list[float]] = []
    end = time.perf_counter() + seconds / 2
    late = end + 4 * seconds
    while (
        not settled
        or (len(settled) < _LEAST and time.perf_counter() < late)
        or (len(settled) < _CALLS and time.perf_counter() < end)
    ):
        settled.append([_called(way) for way in ways])
    usual += [turn[0] for turn in settled]
    report = dcarray.report()
    found: dict[str, Any] = {
        "milliseconds": min(usual) * 1e3,
        "first": beside / first,
        "settled": min(turn[0] for turn in settled) / min(turn[1] for turn in settled),
        "loops": report.loops + report.runs,
        "reasons": [f"{f.function} ({f.where.rpartition(':')[2]})" for f in report.fallbacks][:3],
        "differs": differs or _difference(plain, accelerated),
    }
    if other is not None:
        found["peer"] = min(turn[0] for turn in settled) / min(turn[2] for turn in settled)
    elif failed:
        found["peer failed"] = failed
    return found


def seed() -> None:
    """Reset the random number generators of Python and NumPy to a fixed seed."""
    random.seed(1)
    np.random.seed(1)


def _difference(plain: Way, accelerated: Way) -> str:
    seed()
    expected = plain.result()
    seed()
    return difference(expected, accelerated.result())


def _called(way: Way) -> float:
    seed()
    return way.call()


# ---- results ----------------------------------------------------------------------------------------
def copied(value: Any) -> Any:
    """Return a copy of a result that later calls do not change; an object becomes its type and attributes."""
    if isinstance(value, np.ndarray):
        return np.array(value) if value.dtype != object else [copied(one) for one in value.tolist()]
    if isinstance(value, list | tuple):
        return type(value)([copied(one) for one in value]) if type(value) in (list, tuple) else [*value]
    if isinstance(value, Mapping):
        return {name: copied(one) for name, one in value.items()}
    if isinstance(value, set | frozenset | str | bytes | int | float | complex | np.generic | None):
        return value
    return type(value).__name__, copied(getattr(value, "__dict__", {}))


def difference(one: Any, other: Any, place: str = "") -> str:
    """Return where and how two results differ, or ""; floats may differ by rounding."""
    if type(one) is not type(other):
        return f"{place or 'it'} is a {type(one).__name__} and a {type(other).__name__}"
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{place or 'it'} is {one.dtype}{one.shape} and {other.dtype}{other.shape}"
        return "" if _near(one, other) else f"{place or 'it'} has other items"
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return f"{place or 'it'} has {len(one)} and {len(other)} items"
        if one and all(type(item) is float for item in (*one, *other)):
            return "" if _near(np.array(one), np.array(other)) else f"{place or 'it'} has other items"
        found = (difference(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True)))
        return next(filter(None, found), "")
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return f"{place or 'it'} has other keys"
        return next(filter(None, (difference(one[k], other[k], f"{place}[{k!r}]") for k in one)), "")
    same = (
        _near(np.asarray(one), np.asarray(other))
        if isinstance(one, float | complex | np.inexact)
        else one == other
    )
    return "" if same else f"{place or 'it'} is {one!r} and {other!r}"


def _near(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether arrays have equal items, floats up to the rounding of sums in a different order."""
    if one.dtype.names is not None:
        return all(_near(one[name], other[name]) for name in one.dtype.names)
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    least = float(np.finfo(one.dtype).eps) ** 0.6
    finite = np.abs(one[np.isfinite(one)]) if one.size else np.zeros(0)
    largest = float(finite.max()) if finite.size else 0.0
    return bool(
        np.allclose(one, other, least, least * (largest if math.isfinite(largest) else 0.0), equal_nan=True)
    )
