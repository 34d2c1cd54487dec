"""The writer of random array programs, which runs its lines with NumPy so that most of them are valid."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .lines import LONG, TABLE
from .programs import Program, Variables, compiled, scope

__all__ = ["Writer", "program"]

DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "f8", "f8", "c8", "c16")
USUAL = ("f8", "f8", "f8", "f4", "i4", "i8", "?", "u1", "c16")
RARE = (">f8", "g", "O", ">i4")  # pass through NumPy
LAYOUTS = ("C", "C", "C", "F", "step", "flip", "inner", "wide", "odd")
SCALARS = (
    "0", "1", "2", "-3", "2.5", "True", "1j", "300", "-0.0", "np.float32(1.5)", "np.int8(-2)",
    "np.float64(0.1)", "np.uint8(200)", "np.inf", "np.nan", "np.bool_(True)",
)  # fmt: skip
MOST = 2000  # elements of an array
TRIES = 8
_BLOWING_UP = (
    "outer", "kron", "meshgrid", "convolve", "einsum", "tensordot", "cov", "inner", "dot", "@", "matmul",
    "tolist", "for b in", "for k in", "for j",
)  # fmt: skip


class Writer:
    """The state of a program while it is written.

    Attributes
    ----------
    r : random.Random
    names : list of str
        The arrays there are.
    """

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.large = seed % 50 == 49
        self.long = self.chance(0.5)
        self.scope: Variables = {}
        self.names: list[str] = []
        self.body: list[str] = []
        self.rough: set[str] = set()
        self.plain: set[str] = set()  # the arrays that are not wrapped
        self.counts: dict[str, int] = {}
        self._rough_memory: dict[int, Any] = {}
        self._given: dict[int, Any] = {}

    # ---- choices -------------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        """Return True with probability `p`."""
        return self.r.random() < p

    def one(self, items: Sequence[Any]) -> Any:
        """Return a random item."""
        return self.r.choice(items)

    def fresh(self, letter: str = "v") -> str:
        """Return a new variable name with a first letter."""
        self.counts[letter] = self.counts.get(letter, -1) + 1
        return f"{letter}{self.counts[letter]}"

    def dtype(self) -> str:
        """Return the text of a random dtype."""
        return str(self.one(USUAL if self.long and self.chance(0.9) else DTYPES))

    def scalar(self) -> str:
        """Return the text of a random scalar: a number, or a variable that each round sets."""
        return self.one(("k0", "k1")) if self.chance(0.3) else str(self.one(SCALARS))

    def is_rough(self, name: str) -> bool:
        """Whether an array has values that may differ by rounding."""
        return name in self.rough or id(_owner(self.scope[name])) in self._rough_memory

    def has_layout(self, name: str) -> bool:
        """Whether an array is a view of an input of the program, so that its strides are known."""
        return id(_owner(self.scope[name])) in self._given

    def array(self, want: Callable[[Any], Any] = lambda a: True, rough: bool = False) -> str:
        """Return the name of a random array; one with rounding errors only if ``rough``.

        Raises
        ------
        LookupError
            If there is none.
        """
        found = [n for n in self.names if (rough or not self.is_rough(n)) and want(self.scope[n])]
        if not found:
            raise LookupError
        return str(
            found[-1 - min(int(self.r.expovariate(0.35)), len(found) - 1)]
            if self.chance(0.6)
            else self.one(found)
        )

    def mate(self, name: str, rough: bool = False) -> str:
        """Return a second operand for an array: mostly an array that broadcasts, or a scalar."""
        if self.chance(0.25):
            return self.scalar()
        shape = self.scope[name].shape
        if self.chance(0.02 if self.long else 0.07):
            return f"plain({self.dtype()!r}, {self.suffix(shape)}, {self.r.randrange(99)})"
        if self.chance(0.95):
            return self.array(lambda a: _broadcasts(a.shape, shape), rough)
        return self.array(rough=rough)

    def shape(self) -> tuple[int, ...]:
        """Return a random shape: mostly small; some are longer than SIMD vectors, or recorded."""
        if self.large:
            return tuple(self.one(((17000,), (130, 130), (40, 501), (7, 50, 60))))
        if self.long and self.chance(0.8):
            return tuple(self.r.choice((1, 3, 4, 5, 6, 17)) for _ in range(self.r.choice((1, 2, 2, 3))))
        shape = [self.r.choice((0, 1, 2, 3, 3, 4, 5)) for _ in range(self.r.choice((0, 1, 1, 2, 2, 2, 3)))]
        if shape and self.chance(0.15):
            shape[self.r.randrange(len(shape))] = self.one((9, 17, 33, 64, 65, 129))
        return tuple(shape)

    def other(self, n: int) -> int:
        """Return another length for an axis of length ``n``."""
        if n > 6 and self.chance(0.6):
            return int(self.one((n + 1, n - 1, n // 2, min(2 * n, 20000))))
        return self.r.randint(0, 6)

    def suffix(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a random shape that broadcasts to another one."""
        cut = shape[self.r.randrange(len(shape) + 1) :] if self.chance(0.3) else shape
        return tuple(1 if self.chance(0.15) else n for n in cut)

    def axis(self, a: Any) -> int:
        """Return a random axis of an array; rarely one that it does not have."""
        n = a.ndim + (1 if self.chance(0.03) else 0)
        return self.r.randrange(-n, n) if n else 0

    def axes(self, a: Any) -> str:
        """Return the text of one axis, of several, or of all."""
        if a.ndim > 1 and self.chance(0.3):
            return str(tuple(self.r.sample(range(a.ndim), self.r.randint(1, a.ndim))))
        return "None" if self.chance(0.1 if self.long else 0.35) else str(self.axis(a))

    def slice(self, n: int) -> str:
        """Return the text of a random slice."""
        if self.chance(0.3):
            return ":"
        start = "" if self.chance(0.4) else str(self.r.randint(-n - 1, n + 1))
        stop = "" if self.chance(0.4) else str(self.r.randint(-n - 1, n + 1))
        step = self.one(("", "", ":", ":2", ":-1", ":-2", ":3"))
        return f"{start}:{stop}{step}"

    def key(self, shape: tuple[int, ...]) -> str:
        """Return the text of a random basic index."""
        keys: list[str] = []
        for n in shape[: self.r.randint(0, len(shape))]:
            keys.append(str(self.r.randrange(-n, n)) if n and self.chance(0.2) else self.slice(n))
        if self.chance(0.2):
            keys.insert(self.r.randint(0, len(keys)), "None")
        if self.chance(0.2):
            keys.insert(self.r.randint(0, len(keys)) if len(keys) < len(shape) else 0, "...")
        return ", ".join(keys) or "..."

    def indices(self, n: int, shape: tuple[int, ...]) -> str:
        """Return the text of an array of random indices into an axis of length ``n``."""
        values = np.array(
            [self.r.randrange(-n, n) if n else 0 for _ in range(int(np.prod(shape)))], dtype=int
        )
        text = re.sub(r"\s+", " ", str(values.reshape(shape).tolist()))
        if not shape:
            return f"np.array({text})"
        kind = self.one(("int", "np.int8"))
        ways = (text, f"np.array({text}, dtype={kind})", f"wrap(np.array({text}, dtype=int))")
        return str(self.one(ways))

    def fancy(self, name: str) -> str:
        """Return the text of a random advanced index."""
        a = self.scope[name]
        if not a.ndim or self.chance(0.3):
            if self.chance(0.5):
                return f"{name} {self.one(('>', '<=', '!='))} {self.scalar()}"
            shape = a.shape[: self.r.randint(0, a.ndim)]
            # NumPy takes an empty mask of another type for integers
            maker = "plain" if name in self.plain else "data"
            return f"{maker}('?', {shape}, {self.r.randrange(99)})"
        shapes: list[tuple[int, ...]] = [(2,), (3,), (), (2, 1), (2, 3), (1,), (0,)]
        common = self.one(shapes)
        keys: list[str] = []
        for n in a.shape[: self.r.randint(1, a.ndim)]:
            kind = self.r.random()
            if kind < 0.55 or not keys:
                chosen = common if self.chance(0.7) else self.one(shapes)
                if not chosen and name in self.plain:  # a wrapped one would do what an integer does
                    keys.append(str(self.r.randrange(-n, n) if n else 0))
                else:
                    keys.append(self.indices(n, chosen))
            elif kind < 0.85:
                keys.append(self.slice(n))
            else:
                keys.append(str(self.r.randrange(-n, n) if n else 0))
        self.r.shuffle(keys)
        if self.chance(0.1):
            keys.insert(self.r.randint(0, len(keys)), "None")
        return ", ".join(keys) + ("," if len(keys) == 1 and keys[0].startswith("[") else "")

    # ---- lines ---------------------------------------------------------------------------------------
    def write(self, text: str, makes: str = "", rough: bool = False, into: str = "") -> bool:
        """Add a line if NumPy runs it without an error, or, rarely, in spite of one.

        Parameters
        ----------
        text : str
        makes : str
            Names of the variables that it makes, with blanks between.
        rough : bool
            Are what it makes, and what it writes to, known only within rounding?
        into : str
            The array that it writes to.
        """
        rough = rough or any(self.is_rough(n) for n in re.findall(r"\b[vept]\d+\b", text) if n in self.scope)
        if self.large and any(word in text for word in _BLOWING_UP):
            return False
        made = makes.split()
        read = [n for n in re.findall(r"\b[vep]\d+\b", text) if n in self.scope and n not in made]
        plain = all(n in self.plain for n in read) and not re.search(r"\b(data|wrap)\(", text)
        try:
            exec(compiled(text), self.scope)
        except Exception:
            for name in made:
                self.scope.pop(name, None)
            if self.chance(0.97 if self.long else 0.85):
                return False
        if any(
            isinstance(self.scope.get(n), np.ndarray)
            and self.scope[n].size > MOST * (40 if self.large else 1)
            for n in made
        ):
            for name in made:
                self.scope.pop(name, None)
            return False
        self.body.append(text)
        for name in made:
            value = self.scope.get(name)
            if isinstance(value, np.ndarray) and name not in self.names:
                self.names.append(name)
            if rough:
                self.rough.add(name)
            if plain or name[0] in "ep" or f"{name} = np.array(" in text:  # which NumPy does not dispatch
                self.plain.add(name)
        if rough:
            for value in (self.scope.get(n) for n in (*made, into)):
                if isinstance(value, np.ndarray):
                    own = _owner(value)
                    self._rough_memory[id(own)] = own
            if into:
                self.in_place = True
        return True

    in_place = False  # has something been written into that is known only within rounding?

    def inputs(self) -> list[tuple[str, ...]]:
        """Return the arrays of the first round: name, dtype, shape, seed and layout of each."""
        made: list[tuple[Any, ...]] = []
        for _ in range(self.r.choice((1, 2, 2, 3))):
            rare = self.chance(0.03) and not self.long
            dtype = self.one(RARE) if rare else made[0][1] if made and self.chance(0.5) else self.dtype()
            shape = self.suffix(made[0][2]) if made and self.chance(0.7) else self.shape()
            layout = self.one(LAYOUTS[:-2] if self.long and self.chance(0.95) else LAYOUTS)
            made.append((self.fresh(), dtype, shape, self.r.randrange(99), layout))
        return made

    def round(self, made: Sequence[tuple[Any, ...]], first: bool) -> tuple[str, ...]:
        """Return the lines that create the arrays of a round, different after the first one."""
        size: dict[int, int] = {}
        lines = []
        same = self.chance(0.3)
        for name, dtype, shape, seed, layout in made:
            if not first:
                shape = tuple(
                    size.setdefault(n, n if same or self.chance(0.3) else self.other(n)) for n in shape
                )
                dtype = self.dtype() if self.chance(0.15) else dtype
                seed, layout = self.r.randrange(99), self.one(LAYOUTS) if self.chance(0.4) else layout
            lines.append(f"{name} = data({dtype!r}, {shape}, {seed}, {layout!r})")
        if not first and len(made) > 1 and not self.in_place and self.chance(0.3):
            a, b = self.r.sample([m[0] for m in made], 2)
            lines.append(f"{a} = {b}{self.one(('', '[...]', '[::-1]', '.T', '[1:]', '[:-1]', '.copy()'))}")
        return (*lines, f"k0 = {self.one(SCALARS)}", f"k1 = {self.r.randint(-2, 6)}")

    def program(self) -> Program:
        """Return the finished program."""
        made = self.inputs()
        lines = self.round(made, True)
        self.scope = scope(Program((), ()), False)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line in lines:
                exec(compiled(line), self.scope)
            self.names = [m[0] for m in made]
            self._given = {id(_owner(self.scope[n])): self.scope[n] for n in self.names}
            wanted = self.r.randint(6, 30) if self.long else self.r.randint(2, 14)
            kinds, weights = zip(*(LONG if self.long else TABLE), strict=True)
            for kind in self.r.choices(kinds, weights, k=wanted * 2):
                if len(self.body) >= wanted:
                    break
                for _ in range(TRIES):
                    try:
                        if kind(self) is not False:
                            break
                    except LookupError:
                        continue
        rough = {
            n
            for n, v in self.scope.items()
            if isinstance(v, np.ndarray) and id(_owner(v)) in self._rough_memory
        }
        rounds = [lines] + [self.round(made, False) for _ in range(self.r.choice((0, 1, 2, 4)))]
        face = "dcarray" if self.chance(0.25) else "numpy"
        return Program(tuple(self.body), tuple(rounds), frozenset(rough | self.rough), face)


def _owner(a: Any) -> Any:
    while isinstance(a, np.ndarray) and isinstance(a.base, np.ndarray):
        a = a.base
    return a


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def program(seed: int) -> Program:
    """Return the program with a seed."""
    return Writer(seed).program()
