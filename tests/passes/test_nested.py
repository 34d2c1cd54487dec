"""Bodies of loops and branches are regions of their own."""

from dataclasses import replace

import numpy as np

from dcarray.ir import interp
from dcarray.ir.nodes import Loop
from dcarray.ir.passes.base import Pass
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.text import parse


def _all(region, log):
    return replace(CPU, final=()).run(region, log)


ALL = Pass("all", _all)


def test_golden(golden):
    golden(ALL)


def test_what_got_an_axis_inside_keeps_it_outside():
    region = parse("""region() {
      in x: f64[12, 12, 9];  in w: f64[3, 3, 9, 5];  inout y: f64[10, 10, 5];  temp t: f64[5]
      for i in range(0, 10, 1) {
        for j in range(0, 10, 1) {
          t[c] add= multiply(x[a+i,b+j,k], w[a,b,k,c]) init 0.0 for a<3, b<3, k<9, c<5
          y[i,j,c] = subtract(t[c], 1.0) for c<5
        }
      }
    }""")
    made = CPU.run(region, debug=True)
    assert not any(isinstance(stmt, Loop) for stmt in made.body)
    rng = np.random.default_rng(0)
    given = {a.name: rng.standard_normal(a.shape) for a in region.arrays if a.role != "temp"}
    want, got = (interp.run(one, {k: v.copy() for k, v in given.items()})["y"] for one in (region, made))
    np.testing.assert_allclose(got, want, rtol=1e-12)
