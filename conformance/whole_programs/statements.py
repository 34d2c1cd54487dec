"""A writer of random statements on arrays, as lines of source."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["Lines", "Writer", "indented"]

Lines = list[str]


def indented(lines: Sequence[str]) -> Lines:
    """Return the indented lines of a block; ``pass`` if it is empty."""
    return [f"    {line}" for line in lines] or ["    pass"]


# X and Y are arrays of one shape, I a place in them.  What is whole stays whole and small (`BOUNDS`), so that
# sums are exact in any order; only what `REAL` has makes other numbers, of which there are no sums.
PLAIN = """\
X += 1|X -= 2|X += Y|X -= Y|X *= -1|X[:] = Y|X[1:] = Y[:-1]|X[:-1] += Y[1:]|X[1:] += X[:-1]|X[::2] -= 3
X[:] = Y[::-1]|X[::-1] += Y|X[I] = 5|X[I:] += 1|X[:I] = Y[:I]|X[-1] += X[0]|X[0] = X[-1] + Y[I]
np.add(X, Y, out=X)|np.subtract(Y, X, out=X)|np.multiply(X, 2, out=X, where=Y > 0)|np.add(X[1:], 1, out=X[1:])
X[Y > 2] = 1|X[X < 0] += 60|X += np.where(Y > 1, 1, -1).astype(X.dtype)|np.maximum(X, Y, out=X)
np.copyto(X, Y)|X.fill(2)|X[...] = np.roll(Y, 1, axis=0)|X //= 2|X **= 2|X = X + Y|Y = X
X[1:-1] = X[:-2] + X[2:]|X[1:-1] = Y[:-2] - 2 * Y[1:-1] + Y[2:]|X[:] = abs(X - Y)|X[:] = np.cumsum(Y, axis=0)
X, Y = Y, X|X[:] = np.sort(X, axis=0)|X += X[::-1]|X -= X[0]|X[:] = X - X.min()|X *= X > 0""".replace(
    "\n", "|"
).split("|")
SEVERAL = [
    "t = X + Y; t *= 2; X[:] = t",
    "t = X * 2; Y[:] = t - X; X[:] = t + Y",
    "v = X[1:]; v += 1; v = X[:1]; v -= Y[:1]",
    "v = np.asarray(X); v -= 2; X += 1",
    "v = X.reshape(-1); v[0] += 1; X[:] = X * 2",
    "v = X.ravel(); X += 1; v[::2] += 3",
    "v = X.view(); v += Y; X[:1] = v[-1:]",
    "v = X.T; v[...] = v + 1",
    "v = X[::2]; w = X[1::2]; v += 1; w -= 1; X[:1] += 5",
    "t = X.copy(); X[:] = 0; X += t + Y",
    "a = b = X; a += 1; b *= 2",
    "t = np.zeros_like(X); t[:] = X; t[::2] = Y[::2]; X[:] = t",
    "s = float(X.max()); X -= type(X.flat[0])(s)",
    "(v := X[:1])[...] += 1",
]
REAL = [
    "X *= 0.37",
    "X += np.sqrt(np.abs(Y))",
    "X[:] = np.exp(-np.abs(X))",
    "X /= 3",
    "X[:] = np.sin(Y) + X",
    "X += 0.1",
    "X[:] = np.sqrt(Y)",
    "X[1:-1] = 0.25 * (X[:-2] + 2 * X[1:-1] + X[2:])",
    "X /= Y",
    "X[:] = np.log(X)",
]
BOUNDS = [
    "X %= 61",
    "np.clip(X, -50, 50, out=X)",
    "X[X > 99] = 1; X[X < -99] = -1",
    "np.remainder(X, 31, out=X)",
    "X[...] = np.where(abs(X) > 99, 1, X)",
    "np.minimum(X, 99, out=X); np.maximum(X, -99, out=X)",
]
# K is a loop's variable
ELEMENTS = [
    "X[K] = X[K - 1] + 1",
    "X[K] += Y[K]",
    "X[K] = (X[K] * 3 + K) % 17",
    "X[-K - 1] = Y[K]",
    "Y[K] = X[K] - Y[K - 1]",
    "X[K % 3 if len(X) > 3 else 0] += 1",
    "X[K], Y[K] = Y[K], X[K]",
    "if X[K] > 3: X[K] -= 3",
    "X[K] = max(X[K], Y[K])",
    "X[K:] += 1; X %= 61",
    "X[K] = X[K] if X[K] < Y[K] else Y[K]",
]


class Writer:
    """The random choices of one program, and the statements that they lead to.

    Parameters
    ----------
    seed : int

    Attributes
    ----------
    real : bool
        Do arrays hold other numbers than whole ones?
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.real = self.chance(0.25)

    def chance(self, p: float) -> bool:
        """Return True with probability `p`."""
        return self.random.random() < p

    def between(self, low: int, high: int) -> int:
        """Return a random integer in ``low <= i <= high``."""
        return self.random.randint(low, high)

    def length(self) -> int:
        """Return a random number of elements, from one to some thousands."""
        return self.pick(
            [1, 2, 3, self.between(4, 40), self.between(41, 300), 500, 1000, 1024, 3000, 5000, 20_000]
        )

    def dtype(self) -> str:
        """Return a random dtype for the arrays of a scene."""
        return "f8" if self.real or self.chance(0.7) else self.pick(["i8", "i4", "f4", "f8"])

    # ---- statements ------------------------------------------------------------------------------------
    def statement(self, arrays: Sequence[str]) -> Lines:
        """Return a random statement, or a few that belong together."""
        pool = PLAIN if self.chance(0.7) else SEVERAL
        if self.real and self.chance(0.5):
            pool = REAL
        text = self.pick(pool)
        x, y = self.pick(arrays), self.pick(arrays)
        if not x.isidentifier() and ("X =" in text or "X," in text):
            text = "X += Y"
        if not y.isidentifier() and "Y =" in text:
            text = "X[:] = Y"
        place = self.pick(["0", "-1", f"len({x}) // 2"])
        return self.filled(text, x, y, place)

    def filled(self, text: str, x: str, y: str, place: str = "0") -> Lines:
        """Return the lines of a statement with names in place of its marks X, Y and I."""
        for mark, name in (("X", x), ("Y", y), ("I", place)):
            text = _put(text, mark, name)
        return text.split("; ") if ": X" not in text else [text]

    def bounds(self, arrays: Sequence[str]) -> Lines:
        """Return statements that keep the elements of arrays small."""
        return [line for x in dict.fromkeys(arrays) for line in self.filled(self.pick(BOUNDS), x, x)]

    def run(self, arrays: Sequence[str], low: int = 1, high: int = 5) -> Lines:
        """Return a sequence of ``low`` to ``high`` random statements."""
        lines = [line for _ in range(self.between(low, high)) for line in self.statement(arrays)]
        return [*lines, *self.bounds(arrays)]

    def put_in(self, body: Lines, line: str) -> None:
        """Insert a line at a random position of a block, outside of nested blocks."""
        body.insert(
            self.pick([k for k in range(len(body) + 1) if not "".join(body[k : k + 1]).startswith(" ")]), line
        )

    def elements(self, arrays: Sequence[str], k: str) -> Lines:
        """Return statements on single elements, with index ``k``."""
        lines = []
        for _ in range(self.between(1, 3)):
            text = self.pick(ELEMENTS)
            lines += [_put(text, "K", k)] if text.startswith("if") else _put(text, "K", k).split("; ")
        names = self.pick(arrays), self.pick(arrays)
        return [_put(_put(line, "X", names[0]), "Y", names[1]) for line in lines]

    def loop(self, body: Lines, arrays: Sequence[str], count: str, k: str = "k") -> Lines:
        """Return a loop around a block with at most ``count`` iterations."""
        x = self.pick(arrays)
        body = list(body)
        if self.chance(0.25):
            word = self.pick(["break", "continue", f"return {x}, {k}"])
            test = self.pick([f"{k} > 5", f"{k} % 3 == 1", f"{x}[0] > 40", f"{x}.max() > 55"])
            self.put_in(body, f"if {test}: {word}")
        form = self.pick(["range", "range", "down", "while", "over", "enumerate"])
        if form == "range":
            return [f"for {k} in range({count}):", *indented(body)]
        if form == "down":
            return [f"for {k} in range({count}, 0, -1):", *indented(body)]
        if form == "while":
            return [f"{k} = 0", f"while {k} < {count}:", *indented([f"{k} += 1", *body])]
        if form == "over":
            inner = [*body, f"{x}[:1] += row * 0", f"{k} += 1"]
            return [f"{k} = 0", f"for row in {x}[:{count}]:", *indented(inner)]
        return [f"for {k}, row in enumerate({x}[:{count}]):", *indented([*body, f"{x}[-1:] -= row - row"])]

    def block(self, arrays: Sequence[str], count: str = "n") -> Lines:
        """Return a sequence of statements, or a loop, or both; loops may be nested."""
        kind = self.between(0, 5)
        if kind < 2:
            return self.run(arrays)
        if kind == 2:
            size = self.pick([f"min(len({arrays[0]}), 30)", count])
            guard = f"if k >= min(map(len, ({', '.join(arrays)},))): break"
            return [
                f"for k in range({size}):",
                *indented([guard, *self.elements(arrays, "k")]),
                *self.bounds(arrays),
            ]
        if kind == 3:
            inner = self.loop(self.run(arrays, 1, 2), arrays, "2", "j")
            return self.loop([*self.run(arrays, 1, 2), *inner], arrays, count)
        return [
            *self.run(arrays, 0, 2),
            *self.loop(self.run(arrays, 1, 4), arrays, count),
            *self.run(arrays, 0, 2),
        ]

    def made(self, n: int, dtype: str) -> str:
        """Return the source of an expression that makes an array of ``n`` elements."""
        step, start = self.pick([3, 5, 7, 11]), self.between(0, 9)
        text = f"(np.arange({n}) * {step} + {start}) % {self.pick([13, 17, 23])}"
        return f"({text}).astype({dtype!r})"

    def read(self, expression: str) -> str:
        """Return a statement that reads an array and stores the value."""
        e = expression
        kinds = [
            f"{e}.tolist()[:3]",
            f"{e}.copy()",
            f"float({e}.max() + 0)",
            f"float({e}[0])",
            f"bool(np.any({e} > 3))",
        ]
        return self.pick(kinds if self.real else [*kinds, f"float({e}.sum())", f"float(sum({e}.flat))"])

    def write(self, expression: str) -> str:
        """Return a statement that writes to an array expression of any shape."""
        e = expression
        return self.pick(
            [
                f"{e}[...] += 1",
                f"{e}[:] = {e}[::-1].copy()",
                f"{e}[:1] = 7",
                f"{e}[...] = 3 - {e}",
                f"np.negative({e}, out={e})",
                f"{e}.fill(4)",
            ]
        )


def _put(text: str, mark: str, name: str) -> str:
    """Return the text with a mark replaced where it is a whole word."""
    parts = []
    for k, letter in enumerate(text):
        before = text[k - 1] if k else " "
        after = text[k + 1] if k + 1 < len(text) else " "
        alone = (
            letter == mark
            and not (before.isalnum() or before in "_.")
            and not (after.isalnum() or after == "_")
        )
        parts.append(name if alone else letter)
    return "".join(parts)
