"""What is remembered of expressions is right, and forgotten with them."""

import gc

import numpy as np

from dcarray.ir import windows
from dcarray.ir.nodes import Apply, Expr, Gather, Iota, Load, Window
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.exprs import loads_of, summary
from dcarray.ir.text import parse

F8, I8 = np.dtype("f8"), np.dtype("i8")


def test_counts():
    x, c = Load(Window("x", (), (1,)), F8), Load(Window("c", (), ()), F8)
    both = Apply("add", (x, c), F8)
    root = Apply("multiply", (Apply("exp", (both,), F8), both), F8)
    found = summary(root)
    assert (found.nodes, found.loads, found.work, found.weight, found.dearest) == (5, 2, 14.0, 15.0, 12.0)
    assert loads_of(root) == windows.loads(root) == (x, c)


def test_nothing_is_kept():
    def alive() -> int:
        gc.collect()
        return sum(isinstance(thing, Expr) for thing in gc.get_objects())

    def work(n: int) -> None:
        gather = Gather(Window(f"g{n}", (3,), ()), (Iota(0, I8),), F8)
        assert loads_of(gather) == (gather,)
        text = f"""region() {{ in x{n}: f64[8]; out y: f64[8]; temp t: f64[8]; temp u: f64[8]
          t[i] = x{n}[i] for i<8
          u[i] = add(t[i], t[7-i]) for i<8
          y[i] = sqrt(u[i]) for i<8
        }}"""
        CPU.run(parse(text))

    work(0)
    before = alive()
    for n in range(1, 6):
        work(n)
    assert alive() <= before
