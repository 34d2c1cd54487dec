"""Loops become axes."""

import random

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.nodes import Loop
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.portable.loop_distribution import LOOP_DISTRIBUTION
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify


def test_golden(golden):
    golden(LOOP_DISTRIBUTION)


@pytest.mark.parametrize(("body", "text"), [
    ("v[k+1] = v[k]", "may need v of another one"),
    ("s[] add= a[k,i] for i<9", "may need s of another one"),
    ("b[k,i] = a[k,i] for i<k+1", "differs in size"),
    ("b[k,i] = a[k+i,i] for i<2", "slides along"),
    ("if less(v[k], 0.0) {\nv[k] = 0.0\n}", "more than computations"),
    ("b[k,i] = multiply(a[k,i], size:f64(k*k)) for i<9", "not even"),
    ("b[k,i] add= a[(k)//2,i] for i<9", "does not move evenly"),
])  # fmt: skip
def test_why_a_loop_stays(body, text):
    region = parse(
        "region() {\nin a: f64[70, 9];  inout b: f64[9, 9];  inout v: f64[10];  inout s: f64[]\n"
        f"for k in range(0, 8, 1) {{\n{body}\n}}\n}}"
    )
    verify(region)
    log = Log()
    assert LOOP_DISTRIBUTION.fn(region, log) is region
    assert text in str(log), str(log)


def test_loops_around_a_convolution(same_meaning):
    """As neural networks are written; and the outer product of a padded one."""
    region = parse(
        """region() {
          in x: f64[2, 8, 8, 3];  in w: f64[3, 3, 3, 4];  out o: f64[2, 3, 3, 4]
          temp t: f64[2, 3, 3, 3, 4];  temp s: f64[2, 4];  temp c: f64[2, 6, 6, 4];  temp m: f64[2, 4]
          for i in range(0, 6, 1) {
            for j in range(0, 6, 1) {
              t[a,b,d,e,f] = multiply(x[a,b+i,d+j,e], w[b,d,e,f]) for a<2, b<3, d<3, e<3, f<4
              s[a,f] add= t[a,b,d,e,f] init 0.0 for a<2, b<3, d<3, e<3, f<4
              c[a,i,j,f] = s[a,f] for a<2, f<4
            }
          }
          for p in range(0, 3, 1) {
            for q in range(0, 3, 1) {
              m[a,f] maximum= c[a,2*p+b,2*q+d,f] init -inf for a<2, b<2, d<2, f<4
              o[a,p,q,f] = m[a,f] for a<2, f<4
            }
          }
        }"""
    )
    after = CPU.run(region, debug=True)
    assert not any(isinstance(stmt, Loop) for stmt in after.body), dump(after)
    same_meaning(region, after)


@pytest.mark.parametrize("seed", range(120))
def test_random_loops(seed, same_meaning):
    """Elements at places that move with two loops, in all the ways that windows can."""
    rng = random.Random(seed)

    def place(axis: str) -> str:
        """Stays in 0..11."""
        shift = rng.choice(["0", "1", "k", "m", "k", "m", "2*k", "k+1", "2-k", "3-m", "k+m"])
        return rng.choice([f"{shift}+{axis}", shift, axis]) if axis else shift

    def window(name: str, axes: list[str]) -> str:
        at = [*axes, *["", ""]][:2]
        rng.shuffle(at)
        return f"{name}[{place(at[0])},{place(at[1])}]"

    lines = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        name = rng.choice("bc")
        if kind < 0.4:
            target = f"{name}[k+{rng.randint(0, 3)},m+{rng.randint(0, 3)}]"
            source = window(rng.choice("ab"), ["i", "j"][: rng.randint(1, 2)])
            ends = (
                f" for {', '.join(v + '<3' for v in 'ij' if v in source)}" if set("ij") & set(source) else ""
            )
            start = "" if rng.random() < 0.3 else " init 2"
            lines.append(f"{target} {rng.choice(['add', 'maximum'])}= {source}{start}{ends}")
        elif kind < 0.7:
            target = f"{name}[k+i,m]" if rng.random() < 0.5 else f"{name}[{rng.choice(['k', '3-k'])},4*m+i]"
            lines.append(f"{target} = add({window('a', ['i'])}, {window('a', ['i'])}) for i<3")
        else:
            lines.append(f"t[i] = multiply({window('a', ['i'])}, size(k-m)) for i<3")
            lines.append(f"{name}[k,3*m+i] = subtract(t[2-i], t[i]) for i<3")
    outer = rng.choice(["0, 3, 1", "2, -1, -1", "0, 4, 2"])
    text = "region() {\nin a: i64[12, 12];  inout b: i64[12, 12];  inout c: i64[12, 12];  temp t: i64[3]\n"
    text += f"for k in range({outer}) {{\nfor m in range(0, 3, 1) {{\n" + "\n".join(lines) + "\n}\n}\n}"
    region = parse(text)
    try:
        verify(region)
    except ValueError:
        return  # reads what it writes at other points
    log = Log()
    after = CPU.run(region, log, debug=True)
    same_meaning(region, after)


def test_without_iterations():
    region = parse(
        """region() {
          inout a: f64[4];  in b: f64[4]
          for k in range(3, 3, 1) {
            a[k] = b[k]
          }
        }"""
    )
    after = LOOP_DISTRIBUTION.fn(region, Log())
    verify(after)
    memory = {"a": np.ones(4), "b": np.zeros(4)}
    assert interp.run(after, memory)["a"].sum() == 4
