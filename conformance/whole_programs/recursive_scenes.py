"""Scenes with functions that call themselves and each other."""

from __future__ import annotations

import re

from .scenes import Scene, called
from .statements import Lines, Writer, indented

__all__ = ["RECURSIVE_SCENES"]

# G is the function, N how often it may still call itself, T a number, X an array and L a list.
_NUMBERS = ["N", "T", "N % 3", "2", "0.5", "X[N % len(X)]", "L[N % len(L)]", "len(X)", "WEIGHT"]
_FLOATS = ["T", "N * 0.5", "0.5", "float(X[N % len(X)])", "T - N", "WEIGHT"]
_CALLS = [
    "G(N - 1, A, X, L)",
    "G(N - 2, A, X, L)",
    "(A if N > 2 else G(N - 1, B, X, L))",
    "(G(N - 1, A, X, L) if T > 3 else A)",
    "H(N - 1, A, X, L)",
    "G(N - 1, A, X[::-1], L)",
    "G(t=A, n=N - 3, l=L, x=X)",
]
_STATEMENTS = [
    "t = A",
    "if t > B: t -= A",
    "for k in range(3): t += A",
    "while t > 50: t /= 2",
    "x[n % len(x)] = A",
    "x[n % len(x)] += 1",
    "x[0], x[-1] = x[-1], x[0]",
    "x *= 0.5",
    "l[n % len(l)] = A",
    "assert t < 1e6",
    "t = t / (n - 7)",
    "if n == 4: return A",
    "t = int(A)",
    "LOG.append(n)",
]
_OTHER_TYPES = 3  # of the statements, the last, which functions of floats have not


class _Numbers:
    """A generator of random expressions, which are floats or of any type."""

    def __init__(self, w: Writer) -> None:
        self.are_floats = w.chance(0.7)
        self._writer = w

    def number(self, depth: int = 1) -> str:
        w = self._writer
        text = w.pick(_FLOATS if self.are_floats else _NUMBERS)
        if depth and w.chance(0.6):
            a, b = self.number(depth - 1), self.number(depth - 1)
            text = w.pick([f"({a} + {b})", f"({a} - {b})", f"({a} * 0.5)", f"min({a}, {b})", f"abs({a})"])
        return text

    def filled(self, text: str) -> str:
        return text.replace("A", self.number()).replace("B", self.number(0))


def calls_itself(w: Writer, s: int) -> Lines:
    """Write a function that calls itself, perhaps indirectly, with numbers, an array and a list."""
    names = {"N": "n", "T": "t", "X": "x", "L": "l", "G": f"deep{s}", "H": f"other{s}"}
    numbers = _Numbers(w)
    statements = _STATEMENTS[: -_OTHER_TYPES if numbers.are_floats else None]
    base = ["t", "0.0", "A"] if numbers.are_floats else ["t", "A", "1", "0.0", "x[0]"]

    def body() -> Lines:
        lines = [w.pick(statements) for _ in range(w.between(0, 3))]
        result = " + ".join([w.pick(_CALLS) for _ in range(w.between(1, 2))])
        found = [f"if n <= 0: return {w.pick(base)}", *lines]
        found.append(w.pick([f"return {result}", f"t = {result}\nreturn t + 1", f"return {result} - B"]))
        filled = [part for line in found for part in numbers.filled(line).split("\n")]
        for name, new in names.items():
            filled = [_named(line, name, new) for line in filled]
        return filled

    first = "k * 0.5" if numbers.are_floats else w.pick(["k", "k * 0.5"])
    loop = [
        f"def calls{s}(n, x, l):",
        *indented(
            ["s = 0.0", f"for k in range(n): s = (s + deep{s}(k % 5, {first}, x, l)) % 61", "return s"]
        ),
    ]
    kind, items = ("f8", "[0.5]") if numbers.are_floats else (w.pick(["f8", "i8"]), "[1, 2, 3]")
    scene = [
        f"x, l = {w.made(w.pick([1, 3, 30]), kind)}, {items}",
        *called(w, f"calls{s}, {w.pick([9, 30])}, x, l", f"{s} recursion", ["x", "l"], w.pick([3, 12])),
        f"shown('{s} deep', deep{s}, {w.pick([6, 9])}, 1.5, x, l)",
        f"shown('{s} deeper', deep{s}, {w.pick([-1, 3])}, 2, x.astype('f4'), l)",
    ]
    return [
        f"def deep{s}(n, t, x, l):", *indented(body()), "", "",
        f"def other{s}(n, t, x, l):", *indented(body()), "", "", *loop, "", "",
        f"def scene{s}():", *indented(["global WEIGHT", "WEIGHT = 2.5", *scene]),
    ]  # fmt: skip


def _named(line: str, name: str, new: str) -> str:
    return re.sub(rf"\b{name}\b", new, line)


RECURSIVE_SCENES: dict[str, Scene] = {"calls_itself": calls_itself}
