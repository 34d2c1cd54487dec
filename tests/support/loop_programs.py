"""Random programs with loops, as source, over the arrays and scalars of `names`."""

import random
from typing import Any

import numpy as np

N = 7


def names(seed: int) -> dict[str, Any]:
    """The arrays and scalars of the programs."""
    r = np.random.default_rng(seed)
    return {
        "np": np, "x": r.uniform(-2, 2, N),
        "y": r.uniform(-2, 2, N).astype("f4" if seed % 3 == 0 else "f8"),
        "z": r.integers(-5, 6, N).astype("i4" if seed % 2 else "i8"), "A": r.uniform(-1, 1, (N, N)),
        "B": np.asfortranarray(r.uniform(-1, 1, (N, N))) if seed % 5 == 0 else r.uniform(-1, 1, (N, N)),
        "v": r.uniform(-2, 2, N), "s": float(r.uniform(-1, 1)), "t": np.float64(r.uniform(-1, 1)),
        "f": np.float32(r.uniform(-1, 1)), "c": 1, "clipped": clipped, "mixed": mixed, "moved": moved,
    }  # fmt: skip


def clipped(a: Any, low: float = -1.0, high: float = 1.0) -> Any:
    if low > high:
        low, high = high, low
    return np.minimum(np.maximum(a, low), high)


def mixed(a: Any, b: Any) -> Any:
    if b > a:
        return b - a
    return a


def moved(a: Any, by: Any) -> Any:
    a[1:] -= a[:-1] * 0.25
    out = np.zeros_like(a)
    out[:] = a + by
    return out


class Programs:
    """A generator of one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.vars: list[str] = []
        self.lines: list[str] = []
        self.sums = False

    def pick(self, *options: str) -> str:
        return self.r.choice(options)

    def index(self) -> str:
        if self.vars and self.r.random() < 0.7:
            var = self.pick(*self.vars)
            return self.pick(var, var, f"{var} - 1", f"{var} + 1", f"-{var}", f"{N - 1} - {var}")
        return self.pick("0", "-1", "2", "3", "-2")

    def size(self) -> str:
        return self.pick(str(N), str(N - 1), str(N - 2), "3", *self.vars, *self.vars)

    # ---- expressions --------------------------------------------------------------------------------
    def vector(self, size: str) -> str:
        """A view of so many elements."""
        name = self.pick("x", "x", "y", "z", "v", f"A[{self.index()}]", f"B[:, {self.index()}]", "A.T[1]")
        if size == str(N):
            return self.pick(name, name, f"{name}[::-1]", f"np.flip({name})")
        if size == str(N - 1):
            return name + self.pick("[1:]", "[:-1]", "[1:][::-1]", "[-1:0:-1]")
        if size == str(N - 2):
            return name + self.pick("[1:-1]", "[2:]", "[:-2]", "[-3::-1]")
        if size == "3":
            return name + self.pick("[:3]", "[::3]", "[1:6:2]", "[-1:0:-2]")
        return name + self.pick(f"[:{size}]", f"[{N} - {size}:]", f"[:{size}][::-1]")

    def target(self, size: str) -> str:
        """A view that may stand on the left."""
        found = self.vector(size)
        while found.startswith("np.") or "[" not in found:
            found = self.vector(size)
        return found

    def scalar(self, depth: int) -> str:
        if depth <= 0 or self.r.random() < 0.4:
            options = [f"{name}[{self.index()}]" for name in "xyz"] + [f"A[{self.index()}, {self.index()}]"]
            return self.pick("s", "t", "f", "0.5", "2", "c", *options, *self.vars)
        kind = self.r.randrange(8)
        if kind == 0:
            self.sums = True
            size = self.size()
            a, b = self.vector(size), self.vector(size)
            return self.pick(f"np.sum({a} * {b})", f"({a} @ {b})", f"np.dot({a}, {b})", f"{a}.sum()")
        if kind == 1:
            return self.pick(
                f"np.max({self.vector('5')})", f"{self.vector('6')}.min()", "abs(x[1])", "np.abs(t)"
            )
        if kind == 2:
            return f"mixed({self.scalar(0)}, {self.scalar(0)})"
        if kind == 3:
            return f"(-{self.scalar(depth - 1)})"
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        return f"({a} {self.pick('+', '-', '*')} {b})"

    def expression(self, size: str, depth: int) -> str:
        if depth <= 0 or self.r.random() < 0.25:
            return self.vector(size)
        a, b, c = (self.expression(size, depth - 1) for _ in range(3))
        kind = self.r.randrange(8)
        if kind == 0:
            return f"np.minimum({a}, {b})"
        if kind == 1:
            return f"np.where({a} > {self.scalar(0)}, {b}, {c})"
        if kind == 2:
            return f"clipped({a})"
        if kind == 3:
            return f"({a} {self.pick('+', '-', '*')} {self.scalar(depth - 1)})"
        if kind == 4 and size == str(N):
            self.sums = True
            v = self.vector(size)
            return self.pick(f"(A @ {v})", f"({v} @ B)", "A.sum(axis=0)", "B.max(axis=1)")
        return f"({a} {self.pick('+', '-', '*')} {b})"

    def condition(self) -> str:
        if self.vars and self.r.random() < 0.6:
            sign = self.pick("<", ">", "==", "!=", "<=")
            return f"{self.pick(*self.vars)} {sign} {self.pick('2', '3', *self.vars)}"
        return f"{self.scalar(1)} {self.pick('<', '>')} {self.scalar(1)}"

    # ---- statements ---------------------------------------------------------------------------------
    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def statement(self, depth: int, level: int) -> None:
        kind = self.r.randrange(17)
        size = self.size()
        if kind < 4:
            sign = self.pick("=", "=", "+=", "-=", "*=")
            self.add(depth, f"{self.target(size)} {sign} {self.expression(size, 2)}")
        elif kind < 6:
            name = self.pick("x", "y", "v", "z")
            self.add(depth, f"{name}[{self.index()}] {self.pick('=', '+=')} {self.scalar(2)}")
        elif kind == 6:
            self.add(depth, f"A[{self.index()}, {self.index()}] -= {self.scalar(2)}")
        elif kind == 7:
            self.add(depth, f"{self.pick('s', 't', 'f')} {self.pick('=', '+=')} {self.scalar(2)}")
        elif kind == 8:
            self.add(depth, self.pick("s, t = t, s", "x[0], x[1] = x[1], x[0]", "t, x[2] = x[2], t * 0.5"))
        elif kind == 9:
            value = self.pick("x", "v", "x + 0.5", "moved(v, s)", "x.copy()", "np.zeros(7)", "x[::-1]")
            self.add(depth, f"v = {value}")
        elif kind == 10:
            self.add(depth, self.pick("c += 1", "c = c + 2"))
        elif kind == 11:
            self.add(depth, f"w = {self.expression(size, 1)}")
            self.add(depth, f"w {self.pick('+=', '*=')} {self.scalar(1)}")
            self.add(depth, f"{self.target(size)} = w")
        elif kind == 12 and level:
            self.add(depth, f"if {self.condition()}:")
            self.block(depth + 1, level - 1)
            if self.r.random() < 0.6:
                self.add(depth, "else:")
                self.block(depth + 1, level - 1)
        elif kind == 13 and level and len(self.vars) < 2:
            self.loop(depth, level - 1)
        elif kind == 14:
            self.add(depth, f"x += moved({self.pick('v', 'x', 'v + x', 'A[1]')}, {self.scalar(1)})")
        elif kind == 15:
            self.masked(depth)
        else:
            # a product: NumPy copies a column onto a row that crosses it in the order of memory
            self.add(depth, f"{self.pick('A', 'B')}[{self.index()}, 1:] = {self.expression('6', 2)} * 0.5")

    def masked(self, depth: int) -> None:
        name, other = self.pick("x", "y", "v", "z"), self.pick("x", "v")
        mask = self.pick(f"{name} > {self.scalar(0)}", f"{other} < 0.5", f"np.abs({other}) > 1")
        kept = f"{name}[{mask}]"
        value = self.pick(self.scalar(1), f"{kept} * 0.5 + {self.scalar(0)}", f"{kept} - {other}[{mask}]")
        self.add(depth, f"{kept} {self.pick('=', '=', '-=')} {value}")

    def block(self, depth: int, level: int) -> None:
        for _ in range(self.r.randint(1, 3)):
            self.statement(depth, level)

    def loop(self, depth: int, level: int) -> None:
        var = "ij"[len(self.vars)]
        bounds = ["1, 6", "4, 0, -1", "2, 5", "0, 7", "5", "3, 4"]
        if self.vars:
            bounds += ["i", "i, 6", "i + 1, 7", "i, 0, -1"]
        self.add(depth, f"for {var} in range({self.pick(*bounds)}):")
        self.vars.append(var)
        self.block(depth + 1, level)
        self.vars.pop()


def program(seed: int) -> tuple[str, bool]:
    """The source of a loop, and whether it has sums."""
    made = Programs(seed)
    made.loop(0, 2)
    return "\n".join(made.lines), made.sums
