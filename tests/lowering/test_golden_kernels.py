"""The kernels of some regions, as text: what a pass or schedule changes is seen in the files' differences."""

from pathlib import Path

import pytest

from dcarray.ir.text import dump, parse
from dcarray.lowering import targets
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.text import kernel_text

FOLDER = Path(__file__).with_name("golden")
THREADS = 2
REGIONS = {
    "stencil": """region() {
      in u: f64[900, 900];  out v: f64[900, 900];  temp t: f64[898, 898]
      t[i,j] = add(u[i,j+1], u[i+2,j+1]) for i<898, j<898
      v[i+1,j+1] = multiply(add(t[i,j], u[i+1,j+1]), 0.5) for i<898, j<898
    }""",
    "softmax": """region() {
      in x: f64[500, 400];  out e: f64[500, 400];  temp m: f64[500];  temp s: f64[500]
      m[i] maximum= x[i,j] init -inf for i<500, j<400
      e[i,j] = exp(subtract(x[i,j], m[i])) for i<500, j<400
      s[i] add= e[i,j] init 0.0 for i<500, j<400
      e[i,j] = divide(e[i,j], s[i]) for i<500, j<400
    }""",
    "column_sums": """region() {
      in x: f64[3000, 200];  out c: f64[200]
      c[j] add= x[i,j] init 0.0 for i<3000, j<200
    }""",
    "running_sums": """region() {
      in x: f64[100000];  out y: f64[100000]
      y[i] scan i add= x[i] init 0.0 for i<100000
    }""",
    "recurrence": """region() {
      inout p: f64[300, 300];  in a: f64[300, 300]
      for k in range(1, 300, 1) { p[i,k] = add(multiply(p[i,k-1], 0.5), a[i,k]) for i<300 }
    }""",
}


def kernels(name, target):
    """The planned region and the kernels that a target makes of it, as text."""
    region = targets.get(target).pipeline(0).run(parse(REGIONS[name]))
    texts = [dump(region)]
    for stmt in region.body:
        try:
            kernel, _ = targets.get(target).schedule(stmt, region, cores=THREADS, repeated=False, exact=None)
        except Unsupported as reason:
            texts.append(f"no kernel: {reason}")
        else:
            texts.append(kernel_text(kernel))
    return "\n".join(texts)


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_kernels_are_as_written(golden, name, target):
    golden(FOLDER / f"{name}_{target}.txt", kernels(name, target))
