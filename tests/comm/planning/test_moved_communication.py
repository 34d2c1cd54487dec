"""Communication moved out of the way of statements over the same arrays."""

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.passes.redundancy import MOVE_COMMUNICATION
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.steps import Exchanges, Local, Reduce
from dcarray.ir.parse import parse
from dcarray.ir.passes.base import Log
from dcarray.ir.text import dump

BOTH = """region() {
  in A: f64[8, 6];  in p: f64[6];  in r: f64[8];  out s: f64[6];  out q: f64[8]
  s[j] add= multiply(r[i], A[i,j]) init 0.0 for i<8, j<6
  q[i] add= multiply(A[i,j], p[j]) init 0.0 for i<8, j<6
}"""


def test_two_products_go_over_a_matrix_together() -> None:
    whole = {"A": Layout.blocks((8, 6), Layout.chosen((8,), 2).grid)}
    layouts = whole | {"p": Layout.chosen((6,), 2), "r": Layout.chosen((8,), 2)}
    steps = plan(parse(BOTH), layouts, 2, 0).steps
    assert [type(step) for step in steps] == [Exchanges, Local, Reduce]


def test_what_depends_stays_in_its_place() -> None:
    text = """region() {
      in x: f64[6];  inout y: f64[6];  temp t: f64[6];  temp u: f64[6];  out v: f64[6];  temp w: f64[6]
      y[i] = negative(x[i]) for i<6
      call comm.redistribute(y) -> t
      y[i] = t[i] for i<6
      call comm.redistribute(x) -> u
      call comm.reduce(u) -> w {op: 'add'}
      y[i] = sqrt(x[i]) for i<6
      v[i] = w[i] for i<6
      v[i] = absolute(x[i]) for i<6
    }"""
    region = MOVE_COMMUNICATION.fn(parse(text), Log())
    order = [line.strip() for line in dump(region).splitlines() if "=" in line or "call" in line]
    assert order == [
        "call comm.redistribute(x) -> u", "y[i] = negative(x[i]) for i<6",
        "call comm.redistribute(y) -> t", "y[i] = t[i] for i<6", "y[i] = sqrt(x[i]) for i<6",
        "call comm.reduce(u) -> w {op: 'add'}", "v[i] = w[i] for i<6", "v[i] = absolute(x[i]) for i<6",
    ]  # fmt: skip
    assert MOVE_COMMUNICATION.fn(region, Log()) is region
