"""Proofs about Python ints at a point of the traced program, from ranges of loop variables and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from dcarray.core.errors import Untraceable
from dcarray.ir import dims
from dcarray.ir.nodes import Dim

_LARGE = 1 << 62


class Scope:
    """Proofs about dimensions.  Answers are three-valued (None: unknown), as in `ir.dims`.

    Attributes
    ----------
    line : int
        The current line of the file, for messages.
    """

    def __init__(self, line: int) -> None:
        self.line = line
        self._facts: list[Dim] = []  # known to be >= 0
        self._proofs: dict[Dim, bool | None] = {}

    def fail(self, reason: str) -> Untraceable:
        return Untraceable(reason, self.line)

    # ---- facts --------------------------------------------------------------------------------------
    @contextmanager
    def loop(self, var: str, low: Dim, high: Dim) -> Iterator[None]:
        """A context in which ``low <= var <= high``, and the loop runs."""
        with dims.between({var: (low, high)}), self.given([dims.simplify(high - low)]):
            yield

    @contextmanager
    def given(self, facts: Iterable[Dim]) -> Iterator[None]:
        """A context in which these dimensions are at least 0."""
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
        if answer is None and self._facts:
            with dims.assuming([f >= 0 for f in self._facts]):
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

    def same_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        """Whether two shapes are proved to be equal."""
        return len(a) == len(b) and all(self.eq(n, m) is True for n, m in zip(a, b, strict=True))

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
        if type(low) is not int or type(high) is not int:
            raise self.fail("an integer has no known bounds")
        return low, -high

    # ---- arithmetic ---------------------------------------------------------------------------------
    def arithmetic(self, op: str, a: Dim, b: Dim) -> Dim:
        """Trace ``a op b`` of Python ints, of which at least one depends on loop variables."""
        if op == "+":
            made = a + b
        elif op == "-":
            made = a - b
        elif op == "*" and (type(a) is int or type(b) is int):
            made = a * b
        else:
            raise self.fail(f"an integer is no affine function of loop variables: {op}")
        made = dims.simplify(made)
        low, high = self.limits(made)
        if max(-low, high) > _LARGE:
            raise self.fail("an integer may be too large")
        return made
