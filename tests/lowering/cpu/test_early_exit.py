"""Boolean reductions exit early, with NumPy's results."""

import dataclasses

import numpy as np
import pytest
from kernel_machine import Machine

from dcarray.ir import dims, text
from dcarray.lowering.cpu.schedules import reductions as reduce_module
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check

FOLDS = {
    "logical_or": np.any, "maximum": np.any, "fmax": np.any, "bitwise_or": np.any, "add": np.any,
    "logical_and": np.all, "minimum": np.all, "fmin": np.all, "bitwise_and": np.all, "multiply": np.all,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PIECE": 8, "STOP": 4, "MIN_PARALLEL": 3, "DECIDED": (1, 3)}.items():
            patch.setattr(reduce_module, name, value)
        yield


class Counting(Machine):
    """Counts the elements of ``x`` that are read."""

    def __init__(self, *args):
        self.count = 0
        super().__init__(*args)

    def element(self, name, at, mode):
        self.count += self.buffers[name][2].access == "r"
        return super().element(name, at, mode)


def run(source, x, out, sizes):
    """The region on ``x`` and ``out``; gives the number of elements of ``x`` that are read."""
    region = text.parse(source)
    symbols = tuple(dataclasses.replace(s, hint=sizes[s.name]) for s in region.symbols)
    region = dataclasses.replace(region, symbols=symbols)
    with dims.Guards(sizes):
        kernel, binding = schedule(region.body[0], region)
    check(kernel)
    return Counting(kernel, binding, {"x": (x.reshape(-1), 0), "y": (out.reshape(-1), 0)}, sizes).count


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("size", [1, 3, 7, 16, 17, 24, 25, 61])
def test_all_elements(name, size):
    start = str(FOLDS[name] is np.all).lower()
    source = f"""region(N: int>=1) {{
  in x: bool[N]
  out y: bool[]
  y[] {name}= x[i] init {start} for i<N
}}"""
    for where in [None, *range(0, size, 5)]:
        x = np.full(size, FOLDS[name] is np.all)
        if where is not None:
            x[where] ^= True
        for many in {"N": size}, {}:
            out = np.zeros((), bool)
            text_ = source if many else source.replace("(N: int>=1)", "()").replace("N", str(size))
            read = run(text_, x, out, many)
            assert out == FOLDS[name](x)
            if where is None:
                assert read == size
            elif size > 16:  # blocks of 8 in runs of 1 and 2, in each parts of 4
                known = 8 if where < 8 else 24 if where < 24 else size
                parts = where % 8 // 4 * 4 + 4
                assert read <= known - 8 + parts


@pytest.mark.parametrize("width", [3, 4, 5, 9, 30])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_rows(width, rows):
    rng = np.random.default_rng(width)
    source = f"""region() {{
  in x: bool[{rows}, {width}]
  out y: bool[{rows}]
  y[i] logical_and= x[i,j] init true for i<{rows}, j<{width}
}}"""
    for density in (0.1, 0.5, 0.97, 1.0):
        x = rng.random((rows, width)) < density
        out = np.zeros(rows, bool)
        read = run(source, x, out, {})
        np.testing.assert_array_equal(out, x.all(axis=1))
        if width == 30 and not density > 0.1:
            assert read < x.size / 2


@pytest.mark.parametrize("shape", [(4, 5), (20, 3), (3, 20), (9, 9)])
def test_several_axes(shape):
    n, m = shape
    source = f"""region() {{
  in x: bool[{n}, {m + 2}]
  out y: bool[]
  y[] logical_or= x[i,j+1] init false for i<{n}, j<{m}
}}"""
    for at in range(0, n * m, 3):
        x = np.zeros((n, m + 2), bool)
        x[:, 0] = x[:, -1] = True
        x[at // m, 1 + at % m] = True
        out = np.zeros((), bool)
        assert run(source, x, out, {}) <= n * m and out
        x[at // m, 1 + at % m] = False
        assert run(source, x, out, {}) == n * m and not out


def kernel_of(source):
    region = text.parse(source)
    return kernel_text(schedule(region.body[0], region)[0])


@pytest.mark.parametrize(
    ("value", "stops"),
    [("x[i]", True), ("less(x[i], x[i])", True), ("less(multiply(x[i], x[i]), x[i])", False)],
)
def test_flags_are_not_skipped(value, stops):
    kind = "bool" if value == "x[i]" else "f64"
    source = f"""region() {{
  in x: {kind}[100]
  out y: bool[]
  y[] logical_or= {value} init false for i<100
}}"""
    assert ("if " in kernel_of(source)) is stops


def test_what_others_need_is_not_skipped():
    source = """region() {
  in x: f64[100]
  out y: bool[]
  out z: bool[100]
  nest {
    z[i] = less(x[i], x[i]) for i<100
    y[] logical_or= less(x[i], x[i]) init false for i<100
  }
}"""
    assert "if " not in kernel_of(source)


def test_two_folds_stop_when_both_are_decided():
    source = """region() {
  in x: bool[100]
  out y: bool[]
  out z: bool[]
  nest {
    y[] logical_or= x[i] init false for i<100
    z[] logical_and= x[i] init true for i<100
  }
}"""
    region = text.parse(source)
    kernel, binding = schedule(region.body[0], region)
    for where in (0, 50, 99):
        x = np.zeros(100, bool)
        x[where] = True
        y, z = np.zeros(1, bool), np.ones(1, bool)
        Machine(kernel, binding, {"x": (x, 0), "y": (y, 0), "z": (z, 0)}, {})
        assert y[0] and not z[0]
