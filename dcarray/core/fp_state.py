"""NumPy's floating-point error state, captured when a call is recorded and applied when it runs.

A kernel reports the IEEE exceptions that it raised, but not the statement.  When the captured state does not
ignore one, the region runs once more through the interpreter under a `Witness`, which notes the warning or
error of each statement.  `emit` then warns or raises with the user's line.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy._core.umath import _extobj_contextvar

# The names of NumPy's FPE_* bits in ``np.geterr``, from the lowest bit.
KINDS = ("divide", "over", "under", "invalid")
ODD = 16
_TEXTS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}

Note = tuple[Any, str, str]
"""A statement, the mode of its error state ("warn", "raise" or "call"), and NumPy's text for the
exception."""

P = ParamSpec("P")
R = TypeVar("R")

_local = threading.local()


STATE = _extobj_contextvar
"""The context variable of the error state."""
current_state: Callable[[], Any] = _extobj_contextvar.get
"""The current error state, as an opaque value."""


@contextmanager
def under(state: Any) -> Iterator[None]:
    """A context in which an error state is in force."""
    token = _extobj_contextvar.set(state)
    try:
        yield
    finally:
        _extobj_contextvar.reset(token)


@lru_cache(32)  # most programs have one or two states
def watched_flags(state: Any) -> int:
    """Return the FPE bits of the exceptions that an error state does not ignore, with `ODD` if a mode is not
    ignore, warn or raise."""
    with under(state):
        err: Any = np.geterr()
    bits = sum(1 << k for k, name in enumerate(KINDS) if err[name] != "ignore")
    return bits if modes(state) is not None else bits | ODD


@lru_cache(32)
def modes(state: Any) -> dict[str, str] | None:
    """Return the mode of an error state for each kind of exception; None if a mode is not ignore, warn or
    raise."""
    with under(state):
        err: Any = np.geterr()
    return err if set(err.values()) <= {"ignore", "warn", "raise"} else None


def may_raise(state: Any) -> bool:
    """Whether a floating-point exception under an error state may raise a Python exception."""
    global _filters
    if raises_or_calls(state):
        return True
    if _filters[0] != warnings.filters:  # else the same objects, mostly
        _filters = (
            [*warnings.filters],
            any(
                action == "error" and issubclass(RuntimeWarning, category)
                for action, _, category, _, _ in warnings.filters
            ),
        )
    return _filters[1]


_filters: tuple[list[Any], bool] = (
    [],
    False,
)  # the warning filters, and whether one makes an error of a warning


@lru_cache(32)
def raises_or_calls(state: Any) -> bool:
    """Whether an error state has a mode other than to ignore or warn."""
    does = modes(state)
    return does is None or "raise" in does.values()


def notes_of(loc: Any, state: Any, flags: int) -> list[tuple[Any, str, str]]:
    """Return the notes on a statement that has raised these FPE bits."""
    err = modes(state)
    assert err is not None
    texts = {kind: text for text, kind in _TEXTS.items()}
    return [
        (loc, err[kind], texts[kind])
        for k, kind in enumerate(KINDS)
        if flags & (1 << k) and err[kind] != "ignore"
    ]


def merge_notes(notes: Iterable[Sequence[Note]]) -> list[Note]:
    """Return the union, in order, of the notes of ranks that ran the same statements on parts of elements."""
    order = list(_TEXTS)
    return sorted({note for some in notes for note in some}, key=lambda note: (note[0], order.index(note[2])))


@lru_cache(32)
def _silent_state(state: Any) -> Any:
    with under(state), np.errstate(all="ignore"):
        return current_state()


def silent(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that no floating-point exception in it is reported by NumPy, whatever the error
    state."""

    @wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> R:
        with under(_silent_state(current_state())):
            return function(*args, **kwargs)

    return quiet


class CollectedFlags:
    """The floating-point exceptions that have occurred, as FPE bits."""

    def __init__(self) -> None:
        self.flags = 0


@contextmanager
def collect_flags() -> Iterator[CollectedFlags]:
    """Collect the floating-point exceptions of NumPy's calls inside the block instead of reporting them."""
    collected = CollectedFlags()

    def seen(text: str, flag: int) -> None:
        collected.flags |= flag

    with np.errstate(all="call", call=seen):
        yield collected


_NONE = object()


class Witness:
    """A collector of notes ``(loc, mode, text)`` on the floating-point warnings and errors of a run.  Calls
    of `numpy.seterrcall` functions are noted, too, for `call_handlers`: these functions may use arrays of the
    run, and all ranks have to make them.

    Parameters
    ----------
    states : callable
        Returns the captured state of a statement.
    """

    def __init__(self, states: Callable[[Any], Any]) -> None:
        self.notes: list[Note] = []
        self.loc: Any = None
        self._states = states
        self._state: Any = _NONE

    @contextmanager
    def around(self, loc: Any) -> Iterator[None]:
        """A context in which one statement runs, under the state captured with it."""
        self.loc = loc
        with self.watching():
            self.at(loc)
            yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which statements run, each announced by `at`."""
        outer = getattr(_local, "witness", None)
        _local.witness = self
        self._state = _NONE
        try:
            with under(current_state()):
                yield
        finally:
            _local.witness = outer

    def at(self, loc: Any) -> None:
        """Announce the next statement: set the state captured with it."""
        self.loc = loc
        state = self._states(loc)
        if state is not self._state:
            self._state = state
            _extobj_contextvar.set(_noting_state(state))


_cache: list[tuple[Any, Any]] = []


def _noting_state(state: Any) -> Any:
    """Return the error state that makes notes where ``state`` would warn or raise."""
    for known, noting in _cache:
        if known is state:
            return noting
    with under(state):
        err: Any = np.geterr()
        noting = state
        if "log" not in err.values():
            modes: Any = {k: "call" if v in ("warn", "raise", "call") else v for k, v in err.items()}
            with np.errstate(**modes, call=_note_handler(err)):
                noting = current_state()
    _cache[:] = [*_cache[-15:], (state, noting)]
    return noting


def _note_handler(err: dict[str, Any]) -> Callable[[str, int], None]:
    def note(text: str, flag: int) -> None:
        witness = _local.witness
        witness.notes.append((witness.loc, err[_TEXTS[text]], text))

    return note


def call_handlers(notes: Sequence[Note], state: Callable[[Any], Any]) -> list[Note]:
    """Call the functions set by `numpy.seterrcall` for the notes whose mode is "call"; return the other
    notes."""
    for loc, mode, text in notes:
        if mode == "call":
            with under(state(loc)):
                call: Any = np.geterrcall()
            call(text, bit_of(text))
    return [note for note in notes if note[1] != "call"]


_registries: dict[str, dict[Any, Any]] = {}


def bit_of(text: str) -> int:
    """Return the FPE bit of the exception that NumPy describes with this text."""
    return 1 << KINDS.index(_TEXTS[text])


def message(text: str, name: str) -> str:
    """Return NumPy's message for a floating-point exception in the function ``name``."""
    return f"{text} encountered in {name}"


def emit(notes: Sequence[Note], name: Callable[[Any], str], line_of: Callable[[Any], Any]) -> None:
    """Issue the warnings, or raise the error, that NumPy would have for the notes.

    Raises
    ------
    FloatingPointError
        If the error state captured with the statement has the mode "raise".
    """
    for loc, mode, text in notes:
        if mode == "raise":
            raise FloatingPointError(message(text, name(loc)))
        filename, line = line_of(loc)
        registry = _registries.setdefault(filename, {})
        warnings.warn_explicit(message(text, name(loc)), RuntimeWarning, filename, line, registry=registry)


def is_silent(said: str, filename: str, line: int) -> bool:
    """Whether a warning with this text at this place would not be shown: the filters ignore it, or show it
    once and it was shown before."""
    if getattr(sys.flags, "context_aware_warnings", 0):
        return False  # the filters are not to be had
    module = filename.removesuffix(".py")
    fitting = [
        action
        for action, words, category, where, number in warnings.filters
        if issubclass(RuntimeWarning, category) and number in (0, line)
        if _matches(words, said) and _matches(where, module)
    ]
    action = fitting[0] if fitting else warnings.defaultaction  # type: ignore[attr-defined]
    registry = _registries.get(filename, {})
    if action not in ("default", "module", "once"):
        return action == "ignore"
    if not registry.get((said, RuntimeWarning, line)):
        return False
    # Whether the filters have changed since, which clears registries, shows in one that is of that time.
    probe: dict[Any, Any] = {"version": registry.get("version"), "kept": True}
    with suppress(_Refused):
        warnings.warn_explicit(_Unhashable(said), RuntimeWarning, filename, line, registry=probe)
    return "kept" in probe


def _matches(pattern: Any, text: str) -> bool:
    """Whether an entry of a warning filter fits a text."""
    return pattern is None or (pattern == text if isinstance(pattern, str) else bool(pattern.match(text)))


class _Refused(Exception):
    """Raised by an `_Unhashable` text, which ends a test of the warning filters without showing a warning."""


class _Unhashable(str):
    """A warning text without a hash: `warnings` cannot enter it in a registry of warnings already shown."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise _Refused
