"""Proofs about Python ints at a point of the traced program, from ranges of loop variables and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dcarray.core.errors import Untraceable
from dcarray.ir import dims
from dcarray.ir.nodes import Dim
from dcarray.ir.relations import compare

_LARGEST_INTEGER = 1 << 62
_MAX_EXPRESSIONS = 16_000  # that are evaluated, in all iterations, calls and sides of conditions
_MAX_STATEMENTS = 4_000  # that come of them, with those of attempts that failed


class Scope:
    """Proofs about dimensions.  Answers are three-valued (None: unknown), as in `ir.dims`.

    The methods ``need_...`` return whether a relation may be relied on: it is proved, or it relates only
    symbolic sizes and becomes a guard.  They are called where the program could not be traced without it.

    Attributes
    ----------
    line : int
        The current line of the file, for messages.
    sizes : mapping of str to (int, int)
        The symbolic sizes, with the least and the largest value that each may have.
    guards : list of Relation
        Relations of symbolic sizes that have to be checked before the region runs.
    loops_run : bool
        Whether to require of symbolic sizes that ``for`` loops run at least once.
    """

    def __init__(self, line: int, sizes: Mapping[str, tuple[int, int]] | None = None) -> None:
        self.line = line
        self.sizes = dict(sizes or {})
        self.guards: list[Any] = []
        self.loops_run = False
        self._expressions = self._statements = 0
        self._facts: list[Dim] = []  # known to be >= 0
        self._proofs: dict[Dim, bool | None] = {}

    def fail(self, reason: str) -> Untraceable:
        return Untraceable(reason, self.line)

    # ---- work ---------------------------------------------------------------------------------------
    def count_expression(self) -> None:
        """Count an evaluated expression; raises `Untraceable` if they become too many.

        Nested iterations, calls and sides of conditions are traced again and again, so that they may be very
        many more than the source has.
        """
        self._expressions += 1
        if self._expressions > _MAX_EXPRESSIONS:
            raise self.fail("it is too long to compile: too many iterations, calls or cases are written out")

    def count_statement(self) -> None:
        """Count an emitted statement; raises `Untraceable` as `count_expression` does."""
        self._statements += 1
        if self._statements > _MAX_STATEMENTS:
            raise self.fail("it is too long to compile: too many iterations, calls or cases are written out")

    # ---- facts --------------------------------------------------------------------------------------
    @contextmanager
    def loop(self, var: str, low: Dim, high: Dim) -> Iterator[None]:
        """A context in which ``low <= var <= high`` is known, and that the loop runs."""
        with dims.between({var: (low, high)}), self.given([dims.simplify(high - low)]):
            yield

    @contextmanager
    def given(self, facts: Iterable[Dim]) -> Iterator[None]:
        """A context in which the dimensions ``facts`` are known to be at least 0."""
        count, proofs = len(self._facts), self._proofs
        self._facts += [f for f in facts if type(f) is not int]
        self._proofs = {}
        try:
            yield
        finally:
            del self._facts[count:]
            self._proofs = proofs

    # ---- proofs -------------------------------------------------------------------------------------
    def nonneg(self, a: Dim) -> bool | None:
        """Whether ``a >= 0``."""
        if type(a) is int:
            return a >= 0
        a = dims.simplify(a)
        if type(a) is int:
            return a >= 0
        if a not in self._proofs:
            self._proofs[a] = self._nonneg(a)
        return self._proofs[a]

    def _nonneg(self, a: Dim) -> bool | None:
        answer = dims.prove_nonneg(a)
        if answer is None and (self._facts or self.guards):
            with dims.assuming([*[f >= 0 for f in self._facts], *self.guards]):
                answer = dims.prove_nonneg(a)
        return answer

    def le(self, a: Dim, b: Dim) -> bool | None:
        return self.nonneg(b - a)

    def lt(self, a: Dim, b: Dim) -> bool | None:
        return self.nonneg(b - a - 1)

    def eq(self, a: Dim, b: Dim) -> bool | None:
        if type(a) is int and type(b) is int:
            return a == b
        d = dims.simplify(a - b)
        if type(d) is int:
            return d == 0
        if self.nonneg(d - 1) or self.nonneg(-d - 1):
            return False
        return True if self.nonneg(d) and self.nonneg(-d) else None

    # ---- guards -------------------------------------------------------------------------------------
    def is_fixed(self, a: Dim) -> bool:
        """Whether an integer depends on no loop variable: on symbolic sizes at most."""
        return type(a) is int or (bool(self.sizes) and dims.free_symbols(a) <= self.sizes.keys())

    def need_nonneg(self, a: Dim) -> bool:
        """Whether ``a >= 0``, for all values of loop variables: proved, or required of symbolic sizes."""
        known = self.nonneg(a)
        if known is not None or not self.sizes:
            return known is True
        least = dims.smallest(a)
        return self.is_fixed(least) and self._require(least >= 0)

    def need_le(self, a: Dim, b: Dim) -> bool:
        """Whether ``a <= b``: proved, or required of symbolic sizes."""
        return self.need_nonneg(b - a)

    def need_eq(self, a: Dim, b: Dim) -> bool:
        """Whether ``a == b``: proved, or required of symbolic sizes."""
        known = self.eq(a, b)
        if known is not None or not self.sizes:
            return known is True
        difference = dims.simplify(a - b)
        if not self.is_fixed(difference):
            return False
        return self._require(compare("==", difference, 0))

    def _require(self, relation: Any) -> bool:
        """Make a relation of symbolic sizes a guard, unless it is known not to hold."""
        if isinstance(relation, bool):
            return relation
        if relation not in self.guards:
            self.guards.append(relation)
            self._proofs = {}
        return True

    def same_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        """Whether two shapes are proved to be equal."""
        return len(a) == len(b) and all(self.eq(n, m) is True for n, m in zip(a, b, strict=True))

    def need_same_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        """Whether two shapes are equal: proved, or required of symbolic sizes."""
        return len(a) == len(b) and all(self.need_eq(n, m) for n, m in zip(a, b, strict=True))

    def room(self, n: Dim) -> Dim:
        """Return the largest value of a size over all iterations, which is not negative.

        Raises
        ------
        Untraceable
            If it is not known.
        """
        if type(n) is int:
            return n
        largest = dims.largest(n)
        if not self.is_fixed(largest):
            raise self.fail("a size has no known bound")
        if type(largest) is int:
            return max(0, largest)
        if not self.need_nonneg(largest):
            raise self.fail("a size may be negative")
        return largest

    def limits(self, a: Dim) -> tuple[int, int]:
        """Return the bounds of a Python int.

        Raises
        ------
        Untraceable
            If they are not known.
        """
        if type(a) is int:
            return a, a
        low, high = dims.smallest(a), dims.smallest(-a)
        for _ in self.sizes:  # one may be eliminated only after another
            low, high = dims.smallest(low, self.sizes), dims.smallest(high, self.sizes)
        if type(low) is int and type(high) is int:
            return low, -high
        known = dims.span(dims.smallest(a), self.sizes), dims.span(dims.largest(a), self.sizes)
        if known[0] is None or known[1] is None:
            raise self.fail("an integer has no known bounds")
        return known[0][0], known[1][1]

    def quotient(self, a: Dim, b: Dim) -> Dim | None:
        """Return ``a // b`` of symbolic sizes and a positive number, else None."""
        if not self.is_fixed(a) or type(b) is not int or b <= 0:
            return None
        return dims.simplify(a // b)

    # ---- arithmetic ---------------------------------------------------------------------------------
    def arithmetic(self, op: str, a: Dim, b: Dim) -> Dim:
        """Trace ``a op b`` of Python ints, of which at least one depends on loop variables."""
        if op == "+":
            value = a + b
        elif op == "-":
            value = a - b
        elif op == "*" and (self.is_fixed(a) or self.is_fixed(b)):
            value = a * b
        else:
            raise self.fail(f"an integer is not an affine function of loop variables: {op}")
        value = dims.simplify(value)
        low, high = self.limits(value)
        if (low < -_LARGEST_INTEGER and not self.need_le(-_LARGEST_INTEGER, value)) or (
            high > _LARGEST_INTEGER and not self.need_le(value, _LARGEST_INTEGER)
        ):
            raise self.fail("an integer may be too large")
        return value
