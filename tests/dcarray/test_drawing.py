"""Formulas, layout and drawing, on regions made by hand."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dcarray.inspect.drawing import draw, panel, size_text
from dcarray.inspect.formula import statement_lines
from dcarray.inspect.graph_layout import place
from dcarray.ir.analysis.traffic import Traffic, fused_traffic, total_fused_traffic, unfused_bytes
from dcarray.ir.nodes import Apply, Array, Compute, Expr, Index, Load, Region, Window
from dcarray.ir.ops import const

F8 = np.dtype("f8")
WHOLE, INNER = (100, 100), (98, 98)


def _window(name: str, shape: tuple[int, ...], *offsets: int) -> Window:
    at = offsets or (0,) * len(shape)
    return Window(name, shape, tuple(Index(o, 1, k) for k, o in enumerate(at)))


def _load(name: str, shape: tuple[int, ...], *offsets: int) -> Load:
    return Load(_window(name, shape, *offsets), F8)


def _apply(op: str, *args: Expr) -> Apply:
    return Apply(op, args, F8)


def _jacobi() -> Region:
    """A two-step stencil with a temporary, and the sum of its squares."""
    arrays = (
        Array("A", F8, WHOLE, "in"),
        Array("B", F8, WHOLE, "inout"),
        Array("c", F8, (), "in"),
        Array("t", F8, INNER),
        Array("s", F8, (), "out"),
    )
    scalar = Load(Window("c", INNER, ()), F8)
    both = _apply("add", _load("A", INNER, 1, 0), _load("A", INNER, 1, 2))
    return Region(
        (),
        arrays,
        (
            Compute(_window("t", INNER), both, loc=1),
            Compute(_window("B", INNER, 1, 1), _apply("multiply", scalar, _load("t", INNER)), loc=2),
            Compute(Window("s", WHOLE, ()), _apply("square", _load("B", WHOLE)), "add", const(0.0, F8), 3),
        ),
    )


def test_formulas_read_like_code() -> None:
    first, second, third = _jacobi().body
    assert statement_lines(first) == ["t[i, j] = A[i+1, j] + A[i+1, j+2]"]
    assert statement_lines(second, {"c": "0.2"}) == ["B[i+1, j+1] = 0.2 * t[i, j]"]
    assert statement_lines(third) == ["s += square(B[i, j])"]


def test_formulas_keep_the_order_of_operations() -> None:
    a, b, c = (_load(name, (5,)) for name in "abc")
    cases = {
        _apply("subtract", a, _apply("subtract", b, c)): "a[i] - (b[i] - c[i])",
        _apply("subtract", _apply("subtract", a, b), c): "a[i] - b[i] - c[i]",
        _apply("multiply", _apply("add", a, b), c): "(a[i] + b[i]) * c[i]",
        _apply("power", _apply("power", a, b), c): "(a[i] ** b[i]) ** c[i]",
        _apply("power", _apply("negative", a), b): "(-a[i]) ** b[i]",
        _apply("power", const(-2.0, F8), b): "(-2.0) ** b[i]",
    }
    for expr, text in cases.items():
        assert statement_lines(Compute(_window("r", (5,)), expr)) == [f"r[i] = {text}"]


def test_shared_parts_are_named_and_deep_graphs_stay_small() -> None:
    node: Expr = _load("a", (5,))
    for _ in range(60):  # written out, this would be 2**60 terms
        node = _apply("add", node, node)
    lines = statement_lines(Compute(_window("r", (5,)), _apply("sqrt", _apply("multiply", node, node))))
    assert len(lines) == 61
    assert lines[0] == "t1 = a[i] + a[i]"
    assert lines[-1] == "r[i] = sqrt(t60 * t60)"


def test_traffic_counts_each_array_once() -> None:
    region = _jacobi()
    inner, whole = 98 * 98 * 8, 100 * 100 * 8
    assert fused_traffic(region.body[0], region) == Traffic(whole, inner, 98 * 98)
    assert fused_traffic(region.body[1], region) == Traffic(inner + 8, inner, 98 * 98)
    assert fused_traffic(region.body[2], region) == Traffic(whole, 8, 2 * 100 * 100)
    assert total_fused_traffic(region.body, region).bytes == 2 * whole + 3 * inner + 16


def test_unfused_counts_every_operation() -> None:
    region = _jacobi()
    inner, whole = 98 * 98 * 8, 100 * 100 * 8
    # add: two reads, one write; multiply: one and one; square: one and one; sum: one read, a scalar
    assert unfused_bytes(region) == 3 * inner + 2 * inner + 2 * whole + whole + 8


def test_layout_goes_down_and_keeps_nodes_apart() -> None:
    sizes = {name: (80.0, 30.0) for name in "abcdef"}
    edges = [("a", "c"), ("b", "c"), ("c", "d"), ("a", "e"), ("d", "f"), ("e", "f"), ("a", "f")]
    where = place(sizes, edges)
    for one, two in edges:
        assert where.centre[one][1] < where.centre[two][1]
        assert where.route[one, two][0] == where.centre[one]
        assert where.route[one, two][-1] == where.centre[two]
    for one in sizes:
        for two in sizes:
            if one < two and where.centre[one][1] == where.centre[two][1]:
                assert abs(where.centre[one][0] - where.centre[two][0]) >= 80
    assert all(x - 40 >= 0 and x + 40 <= where.width + 1e-9 for x, _ in where.centre.values())


def test_drawing_is_wellformed_and_complete() -> None:
    region = _jacobi()
    wanted = panel(region, "As <recorded>", "3 & more", {1: "user.py:7"}, "statement", {"c": "0.2"})
    svg = draw([[wanted]])
    root = ET.fromstring(svg)
    text = " ".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    for expected in ("As <recorded>", "3 & more", "user.py:7", "statement 3", "0.2 * t[i, j]", "100 x 100"):
        assert expected in text.replace("\xa0", " ")
    assert svg == draw([[wanted]])


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (32e6, "32 MB"), (1.5e12, "1500 GB")]
)
def test_sizes_are_readable(count: float, text: str) -> None:
    assert size_text(count) == text
