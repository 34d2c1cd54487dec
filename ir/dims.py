"""Dimensions: ints where they can be, sympy integer expressions elsewhere, and proofs about them.

A proof is three-valued: True (holds for all values of the symbols), False (holds for none), None
(unknown, or it depends).  Only ``is True`` and ``is False`` may be acted upon.  Nothing here imports
sympy while all dimensions are ints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import lru_cache
from typing import Any

from .nodes import Dim

#: Inclusive lower and upper bounds of loop variables, outermost loop first; None: no bound.
Bounds = Mapping[str, tuple[Dim | None, Dim | None]]


def symbol(name: str, minimum: int | None = 0) -> Dim:
    """The integer symbol ``name``, at least ``minimum`` (None: any integer, as loop variables are)."""
    from ._symbols import SizeSymbol

    return SizeSymbol(name, minimum)


def simplify(dim: Any) -> Dim:
    """``dim`` in its canonical form: an int when it is one, else an expanded sympy expression."""
    if type(dim) is int:
        return dim
    try:
        return operator.index(dim)
    except TypeError:
        return _expand(dim)


@lru_cache(maxsize=4096)
def _expand(dim: Any) -> Dim:
    dim = dim.expand()
    return int(dim) if dim.is_Integer else dim


def free_symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols in ``dim``."""
    if type(dim) is int:
        return frozenset()
    return frozenset(s.name for s in dim.free_symbols)


_names = lru_cache(maxsize=4096)(free_symbols)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """``dim`` with the named symbols replaced, all at once."""
    if type(dim) is int:
        return dim
    import sympy

    found = {s: sympy.sympify(values[s.name]) for s in dim.free_symbols if s.name in values}
    return simplify(dim.xreplace(found)) if found else dim


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The value of ``dim``.

    Raises
    ------
    KeyError
        If a symbol has no value.
    """
    if type(dim) is int:
        return dim
    names, code = _compiled(dim)
    return int(code(*[values[name] for name in names]))


@lru_cache(maxsize=4096)
def _compiled(dim: Any) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(free_symbols(dim)))
    # Only identifiers, integers and operators that ``show`` wrote reach eval.
    return names, eval(f"lambda {', '.join(names)}: {show(dim)}", {"min": min, "max": max})


def show(dim: Dim) -> str:
    """``dim`` (or a relation) as text that is also a Python expression in exact integers."""
    if type(dim) is int:
        return str(dim)
    return _show(simplify(dim) if not getattr(dim, "is_Relational", False) else dim)


_RELATIONS = {"Equality": "==", "Unequality": "!=", "LessThan": "<=", "StrictLessThan": "<"}
_RELATIONS.update({"GreaterThan": ">=", "StrictGreaterThan": ">"})


@lru_cache(maxsize=4096)
def _show(dim: Any) -> str:
    if isinstance(dim, int):
        return str(dim)
    if dim.is_Relational:
        return f"{show(dim.lhs)} {_RELATIONS[type(dim).__name__]} {show(dim.rhs)}"
    if dim.is_Symbol or dim.is_Integer:
        return str(dim)
    if dim.is_Add:
        out = ""
        # the constant goes last, whatever order sympy keeps
        for term in sorted(dim.args, key=lambda t: (t.is_Integer, t.sort_key())):
            text = _show(term)
            out += text if not out or text.startswith("-") else "+" + text
        return out
    if dim.is_Mul:
        head, *tail = dim.args
        if head == -1:
            return "-" + _factors(tail)
        return _factors(dim.args)
    if dim.is_Pow and dim.exp.is_Integer and dim.exp > 0:
        return _factors([dim.base] * int(dim.exp))
    name = type(dim).__name__
    if name == "floor":
        import sympy

        top, bottom = sympy.fraction(sympy.together(dim.args[0]))
        return f"(({show(simplify(top))})//{_divisor(bottom)})"
    if name == "Mod":
        return f"(({_show(dim.args[0])})%{_divisor(dim.args[1])})"
    if name in ("Max", "Min"):
        args = sorted(_show(a) for a in dim.args)
        return f"{name.lower()}({', '.join(args)})"
    raise ValueError(f"a dimension cannot hold {dim!r}")


def _divisor(dim: Any) -> str:
    return f"({_show(dim)})" if dim.is_Add or dim.is_Mul or dim.is_Pow else _show(dim)


def _factors(factors: Iterable[Any]) -> str:
    return "*".join(f"({_show(f)})" if f.is_Add else _show(f) for f in factors)


# ---- proofs -----------------------------------------------------------------------------------------
def prove_nonneg(a: Dim, bounds: Bounds | None = None) -> bool | None:
    """Whether ``a >= 0``."""
    if type(a) is int:
        return a >= 0
    a = simplify(a)
    if type(a) is int:
        return a >= 0
    known = _nonneg(a, bounds)
    if known is None and (guards := _ACTIVE.get()) is not None:
        return guards.assume_nonneg(a, bounds)
    return known


def prove_eq(a: Dim, b: Dim, bounds: Bounds | None = None) -> bool | None:
    """Whether ``a == b``."""
    if type(a) is int and type(b) is int:
        return a == b
    d = simplify(a - b)
    if type(d) is int:
        return d == 0
    if _always(d - 1, bounds) or _always(-d - 1, bounds):
        return False
    if (guards := _ACTIVE.get()) is not None:
        return guards.assume_zero(d, bounds)
    return None


def prove_le(a: Dim, b: Dim, bounds: Bounds | None = None) -> bool | None:
    """Whether ``a <= b``."""
    if type(a) is int and type(b) is int:
        return a <= b
    return prove_nonneg(b - a, bounds)


def prove_lt(a: Dim, b: Dim, bounds: Bounds | None = None) -> bool | None:
    """Whether ``a < b``."""
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
    """Whether ``e >= 0`` is proved for all values."""
    return _always_free(_smallest(e, bounds))


def _smallest(e: Any, bounds: Bounds | None) -> Dim:
    """``e`` where the bounded variables make it smallest, as far as that is known."""
    for name in reversed(list(bounds or ())):
        e = _eliminate(simplify(e), name, *(bounds or {})[name])
    return simplify(e)


def _eliminate(e: Any, name: str, low: Dim | None, high: Dim | None) -> Any:
    """Put the bound that makes ``e`` smallest for the variable, where ``e`` is linear in it."""
    if type(e) is int:
        return e
    var = next((s for s in e.free_symbols if s.name == name), None)
    if var is None:
        return e
    slope = e.coeff(var)
    rest = simplify(e - slope * var)
    if name in free_symbols(slope) or name in free_symbols(rest):
        return e
    if low is not None and _always_free(simplify(slope)):
        return slope * low + rest
    if high is not None and _always_free(simplify(-slope)):
        return slope * high + rest
    return e


@lru_cache(maxsize=8192)
def _always_free(e: Any) -> bool:
    if type(e) is int:
        return e >= 0
    for atom in _atoms(e):
        slope = e.coeff(atom)
        rest = simplify(e - slope * atom)
        if not slope.is_Rational or (type(rest) is not int and rest.has(atom)):
            return False
        up = bool(slope > 0)
        name = type(atom).__name__
        if name in ("Max", "Min"):
            proofs = (_always_free(simplify(slope * arg + rest)) for arg in atom.args)
            # a sum with +Max is at least that with any one argument; with +Min every one must do
            return any(proofs) if (name == "Max") == up else all(proofs)
        if name == "floor":
            import sympy

            bottom = sympy.fraction(sympy.together(atom.args[0]))[1]
            if not bottom.is_Integer:
                return False
            slack = sympy.Rational(bottom - 1, bottom)
            return _always_free(simplify(slope * (atom.args[0] - (slack if up else 0)) + rest))
        if name == "Mod" and atom.args[1].is_Integer and atom.args[1] > 0:
            return _always_free(simplify(slope * (0 if up else atom.args[1] - 1) + rest))
        return False
    # With every symbol written as its minimum plus something >= 0, a polynomial without negative
    # coefficients cannot be negative.
    shift = {}
    for s in e.free_symbols:
        if getattr(s, "minimum", None) is None:
            return False
        shift[s] = s + s.minimum
    e = e.xreplace(shift).expand()
    return all(c.is_Rational and c >= 0 for c in e.as_coefficients_dict().values())


def _atoms(e: Any) -> list[Any]:
    import sympy

    return sorted(e.atoms(sympy.floor, sympy.Mod, sympy.Max, sympy.Min), key=str)


# ---- guards -----------------------------------------------------------------------------------------
PAIRED_FACTS = 8


class Guards:
    """Decides what cannot be proved by the values that the symbols have now, and keeps a record.

    While the object is entered (``with guards:``), every ``prove_*`` that has no proof is decided by
    the hints; the relations so assumed are in ``recorded``, and a result that was derived under them
    holds for other values as long as ``guards.holds`` says so.

    Parameters
    ----------
    hints : mapping of str to int
        Values of the symbols.  Relations over other symbols (loop variables) stay undecided.
    facts : iterable of sympy relations
        What is known to hold: used in proofs and not recorded.
    """

    def __init__(self, hints: Mapping[str, int] | None = None, facts: Iterable[Any] = ()) -> None:
        self.hints = dict(hints or {})
        self.recorded: list[Any] = []
        self._positive: list[Any] = []  # expressions known to be >= 0
        self._answers: dict[Any, bool] = {}
        self._tokens: list[Token[Guards | None]] = []
        for fact in facts:
            self._learn(fact)

    def __enter__(self) -> Guards:
        self._tokens.append(_ACTIVE.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _ACTIVE.reset(self._tokens.pop())

    def decide(self, relation: Any) -> bool:
        """Whether ``relation`` holds: proved, or assumed from the hints and recorded.

        Raises
        ------
        KeyError
            If it cannot be proved and a symbol has no hint.
        """
        if isinstance(relation, bool):
            return relation
        if relation in (True, False):  # sympy's own booleans
            return bool(relation)
        d = simplify(relation.lhs - relation.rhs)
        kind = type(relation).__name__
        answer: bool | None
        with self:
            if kind in ("Equality", "Unequality"):
                answer = prove_eq(d, 0)
            elif kind in ("LessThan", "StrictLessThan"):
                answer = prove_nonneg(-d if kind == "LessThan" else -d - 1)
            else:
                answer = prove_nonneg(d if kind == "GreaterThan" else d - 1)
        if answer is None:
            raise KeyError(f"no hint decides {show(relation)}")
        return answer != (kind == "Unequality")

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether everything assumed so far holds for these values."""
        return all(evaluate(relation, values) for relation in self.recorded)

    def assume_nonneg(self, d: Any, bounds: Bounds | None = None) -> bool | None:
        """Whether ``d >= 0`` by the facts, or else by the hints (recorded); None without either."""
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
        import sympy

        if self._hinted(d):
            answer = evaluate(d, self.hints) >= 0
            self._record(sympy.Ge(d, 0) if answer else sympy.Lt(d, 0))
            return answer
        for answer, e in ((True, d), (False, -d - 1)):  # with loop variables: for all of their values
            low = _smallest(e, bounds)
            if self._hinted(low) and evaluate(low, self.hints) >= 0:
                self._record(sympy.Ge(low, 0))
                return answer
        return None

    def assume_zero(self, d: Any, bounds: Bounds | None = None) -> bool | None:
        """Whether ``d == 0`` by the facts, or else by the hints (recorded); None without either."""
        if self._follows(d, bounds) and self._follows(-d, bounds):
            return True
        if self._follows(d - 1, bounds) or self._follows(-d - 1, bounds):
            return False
        if not self._hinted(d):
            return None
        import sympy

        answer = evaluate(d, self.hints) == 0
        self._record(sympy.Eq(d, 0) if answer else sympy.Ne(d, 0))
        return answer

    def _hinted(self, d: Any) -> bool:
        return all(name in self.hints for name in free_symbols(d))

    def _record(self, relation: Any) -> None:
        if getattr(relation, "is_Relational", False) and relation not in self.recorded:
            self.recorded.append(relation)
            self._learn(relation)

    def _learn(self, relation: Any) -> None:
        if isinstance(relation, bool) or not getattr(relation, "is_Relational", False):
            return
        d = relation.lhs - relation.rhs
        found = {
            "Equality": [d, -d], "LessThan": [-d], "StrictLessThan": [-d - 1],
            "GreaterThan": [d], "StrictGreaterThan": [d - 1],
        }.get(type(relation).__name__, [])  # fmt: skip
        self._positive += [simplify(p) for p in found]

    def _follows(self, e: Any, bounds: Bounds | None) -> bool:
        """Whether ``e >= 0`` is proved with one of the facts, or with two while there are few."""
        if self._hinted(e) and evaluate(e, self.hints) < 0:
            return False  # the facts hold for the hints, and so would what follows from them
        if _always(e, bounds):
            return True
        names = free_symbols(simplify(e))
        near = [p for p in self._positive if not names.isdisjoint(_names(p))]
        if any(_always(e - p, bounds) for p in near):
            return True
        # what is not found to follow is recorded once more: that costs less than to look at all pairs
        return len(self._positive) <= PAIRED_FACTS and any(
            _always(e - p - q, bounds) for i, p in enumerate(near) for q in self._positive if q is not near[i]
        )


@contextmanager
def assuming(facts: Iterable[Any]) -> Iterator[None]:
    """Inside, proofs may use the relations ``facts`` as well; what they do not decide is left to the
    guards that are active outside, if any."""
    outer = _ACTIVE.get()
    inner = Guards({}, facts)
    if outer is not None:
        inner._positive = outer._positive + inner._positive
        inner.hints, inner.recorded = outer.hints, outer.recorded
    with inner:
        yield


_ACTIVE: ContextVar[Guards | None] = ContextVar("dcarray_guards", default=None)
