"""Random regions mean the same, bit for bit, before and after each pass and the whole pipeline."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import nodes as ir
from dcarray.ir import windows
from dcarray.ir.dims import symbol
from dcarray.ir.ops import const
from dcarray.ir.passes import Log, Pass
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.nested import in_bodies
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.passes.portable import loop_invariants
from dcarray.ir.passes.portable.siblings import SIBLINGS
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

I8 = np.dtype("i8")
SIZE = 6
BINARY = ["add", "subtract", "multiply", "maximum", "bitwise_xor"]


class Maker:
    """Makes a region statement by statement, as a recorder would.  Whole numbers that wrap: sums are
    exact in any order."""

    def __init__(self, rng: random.Random, loops: float = 0.08, depth: int = 1) -> None:
        self.rng, self.loops, self.depth = rng, loops, depth
        self.arrays = {
            name: ir.Array(name, I8, shape, role)
            for name, shape, role in (
                ("a", (SIZE, SIZE), "in"),
                ("b", (SIZE, SIZE), "inout"),
                ("v", (SIZE,), "inout"),
                ("c", (), "in"),
                ("o", (SIZE, SIZE), "out"),
            )
        }
        self.defined = ["a", "b", "v", "c"]
        self.variables: list[ir.Dim] = []  # of the loops around, 0 for a branch
        self.fixed: set[str] = set()  # what a body inside may not write

    def region(self) -> ir.Region:
        body = self.statements(self.rng.randint(3, 9))
        if "o" not in self.defined:
            body += self.whole("o")
        return ir.Region((), tuple(self.arrays.values()), tuple(body))

    # ---- statements --------------------------------------------------------------------------------
    def statements(self, count: int) -> list[ir.Stmt]:
        return [stmt for _ in range(count) for stmt in self.step()]

    def step(self) -> list[ir.Stmt]:
        kind = self.rng.random()
        if kind < self.loops and len(self.variables) < self.depth:
            return self.nested()
        kind = self.rng.random()
        if kind < 0.35:
            return self.whole(None)
        if kind < 0.42:
            return self.reshaped()
        if kind < 0.57:
            return self.fold()
        return self.part()

    def temp(self, shape: tuple[int, ...]) -> str:
        name = f"t{len(self.arrays)}"
        self.arrays[name] = ir.Array(name, I8, shape)
        return name

    def whole(self, name: str | None) -> list[ir.Stmt]:
        """Write all of an array, most often a new temporary."""
        if name is None:
            if "o" not in self.defined and not self.variables and self.rng.random() < 0.2:
                name = "o"
            else:
                name = self.temp(self.rng.choice([(), (SIZE,), (SIZE, SIZE), (4, 5), (1, SIZE), (3,)]))
        target = windows.identity(self.arrays[name])
        made = self.assign(target)
        if name not in self.defined:
            self.defined.append(name)
        return made

    def part(self) -> list[ir.Stmt]:
        """Update a part of an array in place."""
        names = [n for n in self.defined if self.arrays[n].role != "in" and self.arrays[n].shape]
        names = [n for n in names if n not in self.fixed]
        if not names:
            return self.whole(None)
        name = self.rng.choice(names)
        shape = self.arrays[name].shape
        domain = tuple(self.rng.randint(1, n) for n in shape)
        target = self.window(name, domain, list(range(len(domain))))
        return self.assign(target, update=self.rng.random() < 0.5)

    def assign(self, target: ir.Window, update: bool = False) -> list[ir.Stmt]:
        body = self.expr(target.shape)
        if update:
            body = ir.Apply(self.rng.choice(BINARY), (ir.Load(target, I8), body), I8)
        return self.safe(target, body)

    def safe(self, target: ir.Window, body: ir.Expr, combine: str | None = None) -> list[ir.Stmt]:
        """The statement, or two with a temporary where it reads what it writes elsewhere."""
        family = self.arrays[target.array].base or target.array
        for node in windows.loads(body):
            own = (self.arrays[node.window.array].base or node.window.array) == family
            if own and (isinstance(node, ir.Gather) or combine is not None or node.window != target):
                name = self.temp(target.shape)
                whole = windows.identity(self.arrays[name])
                return [ir.Compute(whole, body), *self.stored(target, ir.Load(whole, I8), combine)]
        return self.stored(target, body, combine)

    def stored(self, target: ir.Window, body: ir.Expr, combine: str | None) -> list[ir.Stmt]:
        init = None
        if combine is not None and self.rng.random() < 0.8:
            init = const(3, I8)
        return [ir.Compute(target, body, combine, init)]

    def scan(self) -> list[ir.Stmt]:
        """A temporary of running sums or extrema."""
        domain = self.rng.choice([(SIZE, SIZE), (4, 5), (SIZE,)])
        body, name = self.expr(domain), self.temp(domain)
        combine = self.rng.choice(["add", "maximum"])
        whole = windows.identity(self.arrays[name])
        self.defined.append(name)
        return [ir.Compute(whole, body, combine, const(3, I8), scan=self.rng.randrange(len(domain)))]

    def fold(self) -> list[ir.Stmt]:
        if self.rng.random() < 0.3:
            return self.scan()
        domain = self.rng.choice([(SIZE, SIZE), (4, 5), (SIZE,)])
        kept = [axis for axis in range(len(domain)) if self.rng.random() < 0.5]
        name = self.temp(tuple(domain[axis] for axis in kept))
        target = ir.Window(name, domain, tuple(ir.Index(0, 1, axis) for axis in kept))
        made = self.safe(target, self.expr(domain), self.rng.choice(["add", "maximum"]))
        (*before, last) = made
        assert isinstance(last, ir.Compute)
        if last.init is None:  # continue from what is there
            whole = windows.identity(self.arrays[name])
            before.append(ir.Compute(whole, self.expr(whole.shape)))
        self.defined.append(name)
        return [*before, last]

    def reshaped(self) -> list[ir.Stmt]:
        """A temporary that is seen in two geometries."""
        name = self.temp((SIZE, SIZE))
        made = self.assign(windows.identity(self.arrays[name]))
        other = f"r{len(self.arrays)}"
        self.arrays[other] = ir.Array(other, I8, (SIZE * SIZE,), base=name)
        self.defined += [name, other]
        return made

    def nested(self) -> list[ir.Stmt]:
        known, count = list(self.defined), self.rng.randint(1, 4)
        if self.rng.random() < 0.6:
            name = "kmn"[len(self.variables)]
            self.variables.append(symbol(name, None))
            body = self.statements(count)
            bounds = self.rng.choice([(0, 3, 1), (0, 3, 1), (2, -1, -1), (0, 3, 2)])
            stmt: ir.Stmt = ir.Loop(name, bounds, tuple(body))
        else:
            self.variables.append(0)
            cond = ir.Apply("less", (ir.Load(ir.Window("c", (), ()), I8), const(0, I8)), np.dtype("?"))
            then = self.statements(count)
            self.defined = list(known)
            orelse = self.statements(self.rng.randint(0, 2))
            stmt = ir.Branch(cond, tuple(then), tuple(orelse))
        self.variables.pop()
        self.defined = known
        return [stmt] if body_of(stmt) else []

    # ---- expressions -------------------------------------------------------------------------------
    def window(self, name: str, domain: tuple[int, ...], axes: list[int]) -> ir.Window:
        """A window with the given domain axes along the array's axes, -1 for none."""
        index = []
        for size, axis in zip(self.arrays[name].shape, axes, strict=True):
            need = 1 if axis < 0 else domain[axis]
            moving = self.variables and need + 2 <= size and self.rng.random() < 0.5
            room, shift = (size - 2, self.rng.choice(self.variables)) if moving else (size, 0)
            if axis < 0 or domain[axis] > room:
                index.append(ir.Index(shift + self.rng.randrange(room)))
                continue
            reach = domain[axis] - 1
            stride = self.rng.choice([s for s in (1, 1, 2, 3) if s * reach < room])
            offset = self.rng.randrange(room - stride * reach)
            if self.rng.random() < 0.25:
                index.append(ir.Index(shift + offset + stride * reach, -stride, axis))
            else:
                index.append(ir.Index(shift + offset, stride, axis))
        return ir.Window(name, domain, tuple(index))

    def load(self, domain: tuple[int, ...]) -> ir.Expr:
        name = self.rng.choice(self.defined[-5:] if self.rng.random() < 0.7 else self.defined)
        rank = len(self.arrays[name].shape)
        axes = list(range(len(domain)))
        if self.rng.random() < 0.3:
            self.rng.shuffle(axes)
        padded = ([-1] * rank + axes)[-rank:] if rank else []
        if rank and self.rng.random() < 0.1 and len(domain) == 1:
            steps = tuple(ir.Apply("bitwise_and", (ir.Iota(0, I8), const(1, I8)), I8) for _ in range(rank))
            return (
                ir.Gather(ir.Window(name, domain, ()), steps, I8)
                if min(self.arrays[name].shape) > 1
                else const(2, I8)
            )
        return ir.Load(self.window(name, domain, padded), I8)

    def expr(self, domain: tuple[int, ...]) -> ir.Expr:
        kind = self.rng.random()
        if kind < 0.2:
            return self.load(domain)
        if kind < 0.25:
            return const(self.rng.randint(-2, 2), I8)
        if kind < 0.3 and domain:
            return ir.Iota(self.rng.randrange(len(domain)), I8)
        if kind < 0.4:
            return ir.Apply("negative", (self.load(domain),), I8)
        if kind < 0.5:
            cond = ir.Apply("less", (self.load(domain), self.load(domain)), np.dtype("?"))
            return ir.Apply("where", (cond, self.load(domain), self.load(domain)), I8)
        return ir.Apply(self.rng.choice(BINARY), (self.load(domain), self.load(domain)), I8)


def body_of(stmt: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return (*stmt.then, *stmt.orelse) if isinstance(stmt, ir.Branch) else stmt.body  # type: ignore[union-attr]


def make(rng: random.Random, loops: float = 0.08, depth: int = 1) -> ir.Region:
    region = Maker(rng, loops, depth).region()
    verify(region)
    return region


@settings(max_examples=24, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_pipeline(same_meaning: Callable[[ir.Region, ir.Region], None], rng: random.Random) -> None:
    before = make(rng)
    log = Log()
    after = CPU.run(before, log, debug=True)
    same_meaning(before, after)
    assert CPU.run(after) is after
    again = Log()
    assert dump(CPU.run(before, again)) == dump(after)
    assert str(again) == str(log)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_loops_in_loops(same_meaning: Callable[[ir.Region, ir.Region], None], rng: random.Random) -> None:
    before = make(rng, 0.4, 3)
    after = CPU.run(before, debug=True)
    same_meaning(before, after)
    assert CPU.run(after) is after


BODIES = Pass("nested", lambda region, log: in_bodies(region, log, Pipeline(passes=CPU.passes).run))


@pytest.mark.parametrize("one", (BODIES, *CPU.passes, *CPU.final), ids=lambda one: one.name)
def test_each_pass(same_meaning: Callable[[ir.Region, ir.Region], None], one: Pass) -> None:
    for seed in range(40):
        before = make(random.Random(seed), 0.3, 2)
        after = one.fn(before, Log())
        verify(after)
        same_meaning(before, after)


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_invariants_of_loops(
    first: int, same_meaning: Callable[[ir.Region, ir.Region], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_invariants, "MIN_WORK", 0.5)
    moved = 0
    for seed in range(first, first + 40):
        before = make(random.Random(seed), 0.5, 3)
        log = Log()
        after = loop_invariants.LOOP_INVARIANTS.fn(before, log)
        verify(after)
        same_meaning(before, after)
        moved += bool(log.notes)
    assert moved > 4


def test_nests_are_kept_by_all_passes(same_meaning: Callable[[ir.Region, ir.Region], None]) -> None:
    """The other passes meet nests too, when a third party made some."""
    found = 0
    for seed in range(60):
        before = make(random.Random(1000 + seed))
        nested = SIBLINGS.fn(before, Log())
        found += any(isinstance(stmt, ir.Nest) for stmt in nested.body)
        after = CPU.run(nested, debug=True)
        same_meaning(before, after)
        assert parse(dump(after)) == after
    assert found > 10
