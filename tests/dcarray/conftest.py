"""The judge of every function: the same call on plain and on wrapped arrays."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from made_up_device import MadeUpDevice, make_up

import dcarray as dc
from dcarray.comm.transport.errors import PerformanceWarning
from dcarray.core.processes import communicator

RECORDED: dict[str, Any] = {"eager_below": 0, "jit": "off"}


def _plain(a: np.ndarray) -> Any:
    return a.copy(order="K")


def _wrapped(a: np.ndarray) -> Any:
    return dc.asarray(a.copy(order="K"))


def _scattered(a: np.ndarray) -> Any:
    """A wrapped view with gaps, backwards along the last axis."""
    store = np.zeros([2 * n + 3 for n in a.shape], a.dtype)
    key = tuple(slice(1, 2 * n + 1, 2) for n in a.shape)
    if not a.ndim:
        return _wrapped(a)
    view = dc.asarray(store)[key][..., ::-1]
    view[...] = a
    return view


def _copied(value: Any, copy: Callable[[np.ndarray], Any]) -> Any:
    if type(value) is np.ndarray:
        return copy(value)
    if type(value) in (list, tuple):
        return type(value)(_copied(v, copy) for v in value)
    if type(value) is dict:
        return {k: _copied(v, copy) for k, v in value.items()}
    return value


def _run(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, list[type], Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
            # pending work belongs to the call: its warnings count
            for value in _arrays([result, args, list(kwargs.values())]):
                np.asarray(value)
            error = None
        except Exception as raised:
            result, error = None, raised
    # that messages keep changing is said of ranks, not of the call
    kinds = {w.category for w in caught} - {PerformanceWarning}
    return result, sorted(kinds, key=str), error


@dataclass(frozen=True)
class _What:
    """A call in words, which take longer than the call: they are made where it fails."""

    function: Callable[..., Any]
    mode: dict[str, Any]
    copy: Callable[..., Any]
    args: Any
    kwargs: Any
    of: str = ""

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", self.function)
        return f"{self.of}{name} {self.mode} {self.copy.__name__} {self.args} {self.kwargs}"


def _compare(want: Any, got: Any, what: _What, least: float = 0.0) -> None:
    if isinstance(want, (list, tuple)):
        assert type(got).__name__ == type(want).__name__ and len(got) == len(want), str(what)
        for a, b in zip(want, got, strict=True):
            _compare(a, b, what, least)
        return
    if type(want) is np.ndarray:
        assert type(got) is type(dc.zeros(0)), f"{what}: {type(got)} for an array"
        assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
        assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, not {want.dtype}"
        got = np.asarray(got)
    else:
        assert type(got) is type(want), f"{what}: {type(got)} for {type(want)}"
    if isinstance(want, (np.ndarray, np.inexact, float)) and np.asarray(want).dtype.kind in "fc":
        eps = max(np.finfo(np.asarray(want).dtype).eps, least)
        try:
            np.testing.assert_allclose(got, want, rtol=64 * eps, atol=64 * eps)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None
    else:
        assert np.array_equal(np.asarray(got), np.asarray(want)), f"{what}: {got} for {want}"


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in _arrays(v)]
    return [value] if isinstance(value, (np.ndarray, dc.ndarray)) else []


def _coarsest(args: Any) -> float:
    """The epsilon of the operands: ranks add up in another order, in their dtype and not the result's."""
    kinds = {a.dtype for a in _arrays(args) if a.dtype.kind in "fc"}
    return float(max((np.finfo(kind).eps for kind in kinds), default=0.0))


def _shares(result: Any, args: Any) -> list[bool]:
    return [np.shares_memory(a, b) for a in _arrays(result) for b in _arrays(args)]


@pytest.fixture
def same(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Does a call give on wrapped arrays what it gives on plain ones: values, dtypes, errors, warnings,
    changed arguments and shared memory?  Also on a made-up device."""
    modes: list[tuple[dict[str, Any], Any]] = [({}, _wrapped), (RECORDED, _wrapped), (RECORDED, _scattered)]
    if communicator() is None:
        make_up(monkeypatch, MadeUpDevice())
        modes.append((RECORDED | {"device": "made-up:0"}, _wrapped))

    def judge(function: Callable[..., Any], *args: Any, views: bool = True, **kwargs: Any) -> None:
        plain, named = _copied(args, _plain), _copied(kwargs, _plain)
        want, warned, error = _run(function, plain, named)
        least = _coarsest([*plain, *named.values()]) if communicator() is not None else 0.0
        done = set()
        for mode, copy in modes if "device" not in kwargs else modes[:3]:
            what = _What(function, mode, copy, args, kwargs)
            with dc.options(**mode) as now:
                if (now, copy) in done:  # the environment may ask for the same
                    continue
                done.add((now, copy))
                ours, ours_named = _copied(args, copy), _copied(kwargs, copy)
                got, warned_too, error_too = _run(function, ours, ours_named)
                if error is not None or error_too is not None:
                    assert type(error_too) is type(error), f"{what}: {error_too!r}, not {error!r}"
                    continue
                assert warned_too == warned, f"{what}: warnings {warned_too}, not {warned}"
                _compare(want, got, what, least)
                _compare(plain, ours, replace(what, of="arguments of "), least)
                if views and copy is not _scattered:
                    shared = _shares(want, [*plain, *named.values()])
                    assert _shares(got, [*ours, *ours_named.values()]) == shared, f"{what}: shared memory"

    return judge
