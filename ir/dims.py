"""Dimensions: ints where they can be, expressions with symbols elsewhere, and proofs about them.

A proof is three-valued: True (holds for all values of the symbols), False (holds for none), None
(unknown, or it depends).  Only ``is True`` and ``is False`` may be acted upon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import lru_cache, wraps
from typing import Any, TypeVar

from .dim_arithmetic import dividends, without_factor
from .dim_arithmetic import evaluate as evaluate
from .dim_arithmetic import free_symbols as free_symbols
from .dim_arithmetic import is_number as is_number
from .dim_arithmetic import least_of as least_of
from .dim_arithmetic import linear as linear
from .dim_arithmetic import show as show
from .dim_arithmetic import simplify as simplify
from .dim_arithmetic import slope as slope
from .dim_arithmetic import span as span
from .dim_arithmetic import substitute as substitute
from .dim_arithmetic import symbol as symbol
from .integers import maximum as maximum
from .integers import minimum as minimum
from .memo import symbols_of
from .nodes import Dim, Window
from .relations import Relation, by_operation, compare, is_never_negative

_T = TypeVar("_T")
#: Inclusive lower and upper bounds of loop variables, outermost loop first; None: no bound.
Bounds = Mapping[str, tuple[Dim | None, Dim | None]]


# ---- loop variables ---------------------------------------------------------------------------------
def largest(dim: Dim) -> Dim:
    """Return the largest value of ``dim`` over the values of enclosing loops' variables (``ranging``), as an
    expression without those variables that can be eliminated."""
    return dim if type(dim) is int else simplify(-smallest(simplify(-dim)))


def upper_bound(dim: Dim) -> Dim | None:
    """Return ``largest(dim)``; None if a variable of an enclosing loop remains in it."""
    bound = largest(dim)
    return bound if free_symbols(bound).isdisjoint(_RANGES.get() or ()) else None


def loop_range(start: Dim, stop: Dim, step: Dim) -> tuple[Dim | None, Dim | None]:
    """Return the least and the largest value in ``range(start, stop, step)``, or bounds of these; None for
    one that is not known."""
    if type(start) is type(stop) is type(step) is int:
        values = range(start, stop, step)
        return (min(values[0], values[-1]), max(values[0], values[-1])) if values else (start, start)
    up = prove_nonneg(step)
    if up is None:
        return None, None
    return (start, simplify(stop - 1)) if up else (simplify(stop + 1), start)


def no_iterations(start: Dim, stop: Dim, step: Dim) -> bool:
    """Return whether ``range(start, stop, step)`` is proved to be empty."""
    low, high = loop_range(start, stop, step)
    return low is not None and prove_lt(high, low) is True


@contextmanager
def ranging(name: str, bounds: tuple[Dim, Dim, Dim]) -> Iterator[None]:
    """A context in which proofs know that the variable ``name`` is in ``range(*bounds)``, and what enclosing
    contexts say of other variables."""
    with between({name: loop_range(*bounds)}):
        yield


@contextmanager
def between(ranges: Bounds) -> Iterator[None]:
    """A context like `ranging`, in which proofs know the least and greatest values of several variables."""
    token = _RANGES.set({**(_RANGES.get() or {}), **ranges})
    try:
        yield
    finally:
        _RANGES.reset(token)


def count(bounds: tuple[Dim, Dim, Dim]) -> Dim | None:
    """Return the number of values in ``range(*bounds)``; None if no formula for it is proved."""
    start, stop, step = bounds
    if type(start) is type(stop) is type(step) is int:
        return len(range(start, stop, step))
    if type(step) is not int or abs(step) != 1:
        return None
    iterations = simplify((stop - start) * step)
    return iterations if prove_nonneg(iterations) is True else None


# ---- proofs -----------------------------------------------------------------------------------------
def prove_nonneg(a: Dim, bounds: Bounds | None = None) -> bool | None:
    """Return whether ``a >= 0`` for all values of the symbols and of the variables within ``bounds`` (None:
    as `ranging` says); None if neither this nor the opposite is proved."""
    if type(a) is int:
        return a >= 0
    a = simplify(a)
    if type(a) is int:
        return a >= 0
    bounds = _RANGES.get() if bounds is None else bounds
    known = _nonneg(a, bounds)
    if known is None and (guards := _ACTIVE.get()) is not None:
        return guards.assume_nonneg(a, bounds)
    return known


def prove_eq(a: Dim, b: Dim, bounds: Bounds | None = None) -> bool | None:
    """Return whether ``a == b``; the answer and ``bounds`` are as in `prove_nonneg`."""
    if type(a) is int and type(b) is int:
        return a == b
    d = simplify(a - b)
    if type(d) is int:
        return d == 0
    bounds = _RANGES.get() if bounds is None else bounds
    if _always(d - 1, bounds) or _always(-d - 1, bounds):
        return False
    if (guards := _ACTIVE.get()) is not None:
        return guards.assume_zero(d, bounds)
    return None


def prove_le(a: Dim, b: Dim, bounds: Bounds | None = None) -> bool | None:
    """Return whether ``a <= b``; the answer and ``bounds`` are as in `prove_nonneg`."""
    if type(a) is int and type(b) is int:
        return a <= b
    return prove_nonneg(b - a, bounds)


def prove_lt(a: Dim, b: Dim, bounds: Bounds | None = None) -> bool | None:
    """Return whether ``a < b``; the answer and ``bounds`` are as in `prove_nonneg`."""
    if type(a) is int and type(b) is int:
        return a < b
    return prove_nonneg(b - a - 1, bounds)


def _nonneg(a: Any, bounds: Bounds | None) -> bool | None:
    if _always(a, bounds):
        return True
    if _always(-a - 1, bounds):
        return False
    return None


def _always(e: Any, bounds: Bounds | None) -> bool:
    """Return whether ``e >= 0`` is proved for all values of its symbols and bounded variables."""
    bounds = _RANGES.get() if bounds is None else bounds
    return _always_in(e, tuple(bounds.items()) if bounds else ())


@lru_cache(maxsize=8192)
def _always_in(e: Any, ranges: tuple[tuple[str, tuple[Dim | None, Dim | None]], ...]) -> bool:
    bounds = dict(ranges)
    if is_never_negative(smallest(e, bounds)):
        return True
    e = simplify(e)
    # variables inside Max or floor are eliminated after these
    return bool(bounds) and type(e) is not int and bool(by_operation(e, lambda x: _always(x, bounds)))


def smallest(e: Any, bounds: Bounds | None = None) -> Dim:
    """Return ``e`` with each bounded variable replaced by the bound at which ``e`` is smallest; a variable
    for which that bound is not known remains."""
    bounds = _RANGES.get() if bounds is None else bounds
    e = simplify(e)
    for name in reversed(list(bounds or ())):
        if type(e) is int:
            break
        if name in e.names:
            e = _eliminate(e, name, *(bounds or {})[name])
    return e


def _eliminate(e: Any, name: str, low: Dim | None, high: Dim | None) -> Any:
    """Return ``e`` with the variable ``name`` replaced by the bound at which ``e`` is smallest; ``e`` itself
    if it is not linear in the variable, or if that bound is not known."""
    if type(e) is int:
        return e
    pace = slope(e, name)
    if pace is None or (type(pace) is int and pace == 0):
        return e
    if low is not None and is_never_negative(pace):
        return substitute(e, {name: low})
    if high is not None and is_never_negative(simplify(-pace)):
        return substitute(e, {name: high})
    return e


def kept_pair(fn: Callable[[Window, Window], _T]) -> Callable[[Window, Window], _T]:
    """Return a function of two windows that caches the results of ``fn`` with the first window; for windows
    with symbols, a result counts only under the same ranges and guards."""

    @wraps(fn)
    def get(a: Window, b: Window) -> _T:
        try:
            answer: _T = a._kept[get][b]
        except (AttributeError, KeyError):
            key: Any = b
            if symbols_of(a) or symbols_of(b):
                if _ACTIVE.get() is not None:
                    return fn(a, b)
                key = b, tuple((_RANGES.get() or {}).items())
            answers: dict[Any, _T] = a._kept.setdefault(get, {})
            if key not in answers:
                answers[key] = fn(a, b)
            answer = answers[key]
        return answer

    return get


def known() -> object:
    """Return a value that stands for the ranges and guards of this context: equal values, equal proofs."""
    guards = _ACTIVE.get()
    return _RANGES.get(), guards, None if guards is None else len(guards._positive)


# ---- guards -----------------------------------------------------------------------------------------
PAIRED_FACTS = 8


class Guards:
    """A context in which relations that cannot be proved are decided by the symbols' present values and
    recorded.

    While the object is entered (``with guards:``), every ``prove_*`` that finds no proof is answered by
    the hints, and the relation that was assumed is added to ``recorded``.  A result that was derived so is
    valid for all values for which ``guards.holds`` is true.

    Parameters
    ----------
    hints : mapping of str to int
        The present values of symbols.  Relations with other symbols (loop variables) stay undecided.
    facts : iterable of Relation or bool
        Relations that are known to hold: they are used in proofs and not recorded.
    """

    def __init__(self, hints: Mapping[str, int] | None = None, facts: Iterable[Any] = ()) -> None:
        self.hints = dict(hints or {})
        self.recorded: list[Any] = []
        self._positive: list[Any] = []  # expressions known to be >= 0
        self._equalities: list[Relation] = []
        self._equal: dict[str, Any] = {}  # by them: symbols, and expressions without these symbols
        self._answers: dict[Any, bool] = {}
        self._tokens: list[Token[Guards | None]] = []
        for fact in facts:
            self._learn(fact)

    def __enter__(self) -> Guards:
        self._tokens.append(_ACTIVE.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _ACTIVE.reset(self._tokens.pop())

    def decide(self, relation: Relation | bool) -> bool:
        """Return whether ``relation`` holds, by proof or else by the hints (then it is recorded). Raises
        KeyError if there is no proof and a symbol has no hint."""
        if isinstance(relation, bool):
            return relation
        answer: bool | None
        with self:
            if relation.sign in ("==", "!="):
                answer = prove_eq(relation.left, relation.right)
            else:
                answer = prove_nonneg(relation.least_zero()[0])
        if answer is None:
            raise KeyError(f"no hint decides {show(relation)}")
        return bool(answer) != (relation.sign == "!=")

    def holds(self, values: Mapping[str, int]) -> bool:
        """Return whether all recorded relations hold for these values of the symbols."""
        return all(evaluate(relation, values) for relation in self.recorded)

    def assume_nonneg(self, d: Any, bounds: Bounds | None = None) -> bool | None:
        """Return whether ``d >= 0`` by the facts, or else by the hints (then recorded); None if neither
        decides."""
        question = (d, tuple((bounds or {}).items()))
        if question not in self._answers:  # facts become more, so that an answer stays
            answer = self._assume_nonneg(d, bounds)
            if answer is None:
                return None
            self._answers[question] = answer
        return self._answers[question]

    def _assume_nonneg(self, d: Any, bounds: Bounds | None) -> bool | None:
        if self._follows(d, bounds):
            return True
        if self._follows(-d - 1, bounds):
            return False
        for answer, e in ((True, d), (False, -d - 1)):  # for all values of the loop variables
            low = smallest(e, bounds)
            if low != e and (low >= 0 if type(low) is int else self._follows(low, bounds)):
                return answer
        if self._hinted(d):
            answer = evaluate(d, self.hints) >= 0
            self._record(compare(">=" if answer else "<", d, 0))
            return answer
        for answer, e in ((True, d), (False, -d - 1)):  # with loop variables: for all of their values
            low = smallest(e, bounds)
            if self._hinted(low) and evaluate(low, self.hints) >= 0:
                self._record(compare(">=", low, 0))
                return answer
        return None

    def assume_zero(self, d: Any, bounds: Bounds | None = None) -> bool | None:
        """Return whether ``d == 0`` by the facts, or else by the hints (then recorded); None if neither
        decides."""
        if self._follows(d, bounds) and self._follows(-d, bounds):
            return True
        if self._follows(d - 1, bounds) or self._follows(-d - 1, bounds):
            return False
        if not self._hinted(d):
            return None
        answer = evaluate(d, self.hints) == 0
        self._record(compare("==" if answer else "!=", d, 0))
        return answer

    def _hinted(self, d: Any) -> bool:
        return all(name in self.hints for name in free_symbols(d))

    def _record(self, relation: Any) -> None:
        if isinstance(relation, Relation) and relation not in self.recorded:
            self.recorded.append(relation)
            self._learn(relation)

    def _learn(self, relation: Any) -> None:
        if not isinstance(relation, Relation):
            return
        if relation.sign == "==" and self._learn_equal(self._reduced(relation.left - relation.right)):
            self._equalities.append(relation)
            return
        for e in map(self._reduced, relation.least_zero()):
            self._positive += [*dict.fromkeys([e, without_factor(e)]), *dividends(e)]

    def _learn_equal(self, d: Any) -> bool:
        """Solve ``d == 0`` for a symbol, and replace that symbol in all proofs from now on; return whether
        ``d`` could be solved."""
        atoms = [] if type(d) is int else sorted(d.atoms(), key=lambda a: a.key)
        symbols = [atom for atom in atoms if atom.kind == "symbol"]
        for atom in sorted(symbols, key=lambda a: a.args[1] is not None and a.args[1] >= 0):
            name, least = atom.args
            pace = slope(d, name)
            if type(pace) is int and abs(pace) == 1:
                value = simplify(symbol(name, least) - d * pace)
                self._equal = {k: substitute(v, {name: value}) for k, v in self._equal.items()}
                self._equal[name] = value
                self._positive = [self._reduced(p) for p in self._positive]
                if least is not None:
                    self._positive.append(simplify(value - least))
                self._answers.clear()
                return True
        return False

    @property
    def equal(self) -> Mapping[str, Dim]:
        """The symbols that can be replaced according to the facts, each with the expression that it
        equals."""
        return self._equal

    def _reduced(self, e: Any) -> Any:
        """Return an expression with the symbols in ``equal`` replaced."""
        if not self._equal or e is None or type(e) is int or self._equal.keys().isdisjoint(e.names):
            return e
        return substitute(e, self._equal)

    def _follows(self, e: Any, bounds: Bounds | None) -> bool:
        """Return whether ``e >= 0`` follows from one of the facts, or from two if there are only few
        facts."""
        if self._hinted(e) and evaluate(e, self.hints) < 0:
            return False  # the facts hold for the hints, and so would what follows from them
        if self._equal:
            e, ranges = self._reduced(e), _RANGES.get() if bounds is None else bounds
            bounds = {
                k: (self._reduced(low), self._reduced(high)) for k, (low, high) in (ranges or {}).items()
            }
        e = without_factor(e)
        if _always(e, bounds):
            return True
        names = free_symbols(simplify(e))
        near = [p for p in self._positive if not names.isdisjoint(free_symbols(p))]
        if any(_always(e - p, bounds) for p in near):
            return True
        # a relation that follows unnoticed is recorded twice: that costs less than all pairs
        return len(self._positive) <= PAIRED_FACTS and any(
            _always(e - p - q, bounds) for i, p in enumerate(near) for q in self._positive if q is not near[i]
        )


@contextmanager
def assuming(facts: Iterable[Any]) -> Iterator[None]:
    """A context in which proofs may use the relations ``facts``; questions that these do not decide go to the
    `Guards` entered outside, if any."""
    outer = _ACTIVE.get()
    inner = Guards({}, facts)
    if outer is not None:
        for equality in outer._equalities:
            inner._learn(equality)
        inner._positive = [*map(inner._reduced, outer._positive), *inner._positive]
        inner.hints, inner.recorded = outer.hints, outer.recorded
    with inner:
        yield


_ACTIVE: ContextVar[Guards | None] = ContextVar("dcarray_guards", default=None)
_RANGES: ContextVar[Bounds | None] = ContextVar("dcarray_ranges", default=None)
