"""Of what is overwritten in large part only the border is written."""

from collections.abc import Callable

import pytest

from dcarray.ir.nodes import Region
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.portable import partial_dead_stores
from dcarray.ir.passes.portable.partial_dead_stores import PARTIAL_DEAD_STORES
from dcarray.ir.text import parse
from dcarray.ir.verify import verify


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(partial_dead_stores, "MIN_POINTS", 8)
    monkeypatch.setattr(partial_dead_stores, "PART", 1)


def test_golden(golden):
    golden(PARTIAL_DEAD_STORES)


REFUSED = {
    "is read before it is overwritten": """
          y[i] = z[i] for i<16
          w[i] = y[i+3] for i<10
          y[i+1] = 0.0 for i<14
    """,
    "y is read before": """
          y[i] = z[i] for i<16
          y[i+1] = add(y[i+1], y[i+1]) for i<14
    """,
    "no box in a box": """
          y[i] = z[i] for i<16
          y[2*i] = 0.0 for i<8
    """,
    "may reach beyond it": """
          y[i+2] = z[i] for i<14
          y[i+1] = 0.0 for i<14
    """,
    "within itself": """
          y[i+8] = y[i] for i<8
          y[i+9] = 0.0 for i<6
    """,
    "may not be overwritten": """
          y[i] = z[i] for i<16
          if less(z[0], z[1]) {
            y[i+1] = 0.0 for i<14
          }
    """,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_stays(check, reason):
    body = REFUSED[reason]
    log = check(
        PARTIAL_DEAD_STORES,
        f"region() {{\n in z: f64[16];  inout y: f64[16];  inout w: f64[16]\n{body}}}",
        None,
    )
    assert reason in str(log) or reason == "may not be overwritten"


def test_little_is_not_worth_it(check, monkeypatch):
    text = """region() {
          in z: f64[40];  out y: f64[40]
          y[i] = z[i] for i<40
          y[i+1] = 0.0 for i<COUNT
        }
        """
    monkeypatch.setattr(partial_dead_stores, "PART", 4)
    check(PARTIAL_DEAD_STORES, text.replace("COUNT", "20"), None)
    monkeypatch.setattr(partial_dead_stores, "MIN_POINTS", 41)
    check(PARTIAL_DEAD_STORES, text.replace("COUNT", "38"), None)


BOXES = ("0,0,9,9", "1,1,7,7", "1,0,8,9", "0,2,9,6", "2,3,5,5", "1,2,8,7")


@pytest.mark.parametrize("first", BOXES)
@pytest.mark.parametrize("second", BOXES)
def test_boxes_in_boxes(same_meaning: Callable[[Region, Region], None], first, second):
    def box(text, value):
        i, j, n, m = text.split(",")
        return f"y[i+{i},j+{j}] = {value} for i<{n}, j<{m}"

    before = parse(f"""region() {{
      in z: f64[9, 9];  inout y: f64[9, 9];  in c: f64[]
      {box(first, "z[j,i]")}
      {box("1,1,6,6", "5.0")}
      {box(second, "add(z[i,j], c[])")}
    }}""")
    after = PARTIAL_DEAD_STORES.fn(before, Log())
    verify(after)
    same_meaning(before, after)
    same_meaning(before, CPU.run(before, debug=True))


def test_pictures_have_thin_borders(same_meaning):
    text = """region() {
          in z: f64[20, 20, 4];  out y: f64[20, 20, 4]
          y[i,j,k] = z[i,j,k] for i<20, j<20, k<4
          y[i+1,j+1,k] = add(z[i,j+1,k], z[i+2,j+1,k]) for i<18, j<18, k<4
          y[i,0,k] = 0.0 for i<20, k<4
        }
        """
    before = parse(text)
    after = CPU.run(before, debug=True)
    same_meaning(before, after)
    written = sum(_points(stmt) for stmt in after.body)
    assert written < 20 * 20 * 4 + 100


def _points(stmt):
    if hasattr(stmt, "body") and isinstance(stmt.body, tuple):
        return sum(map(_points, stmt.body))
    count = 1
    for n in stmt.target.shape:
        count *= n
    return count
