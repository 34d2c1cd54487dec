"""Chains of stencils, and costs with which many or none of them share an exchange."""

from hypothesis import strategies as st

from dcarray.comm.planning.performance_model import Line, Link
from dcarray.comm.planning.placement.ghost_zone_cost import Costs
from dcarray.ir.nodes import Region
from dcarray.ir.parse import parse

ALWAYS = Costs(Link((Line(1.0, 1e9),)), 1e-12)
NEVER = Costs(Link((Line(1e-12, 1e12),)), 1.0)


def sweeps(n: int, turns: int) -> Region:
    line = "{0}[i+1] = multiply(0.5, add({1}[i], {1}[i+2])) for i<{2}"
    body = [line.format(*pair, n - 2) for _ in range(turns) for pair in ("BA", "AB")]
    return parse("\n".join(["region() {", f"inout A: f64[{n}]; inout B: f64[{n}]", *body, "}"]))


@st.composite
def chains(draw: st.DrawFn) -> tuple[Region, tuple[int, ...], int]:
    axes = draw(st.integers(1, 2))
    ranks = draw(st.integers(1, 6))
    shape = tuple(draw(st.integers(8, 18)) for _ in range(axes))
    lines = []
    for _ in range(draw(st.integers(2, 7))):
        target, *sources = draw(st.lists(st.sampled_from("ABC"), min_size=2, max_size=4))
        margins = [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in shape]
        paces = [draw(st.sampled_from([1, 1, 1, 2])) for _ in shape]
        extents = [-(-(n - a - b) // p) for n, (a, b), p in zip(shape, margins, paces, strict=True)]
        loads = []
        for source in sources:
            shifts = [draw(st.integers(-min(a, 2), min(b, 2))) for a, b in margins]
            loads.append(_at(source, [a + s for (a, _), s in zip(margins, shifts, strict=True)], paces))
        body = loads[0]
        for load in loads[1:]:
            body = f"subtract({body}, {load})"
        loops = ", ".join(f"{x}<{n}" for x, n in zip("ij", extents, strict=False))
        lines.append(f"{_at(target, [a for a, _ in margins], paces)} = {body} for {loops}")
    extent = ", ".join(map(str, shape))
    arrays = "; ".join(f"inout {name}: f64[{extent}]" for name in "ABC")
    return parse("\n".join(["region() {", arrays, *lines, "}"])), shape, ranks


def _at(name: str, offsets: list[int], paces: list[int]) -> str:
    places = (f"{pace}*{x}+{offset}" for x, offset, pace in zip("ij", offsets, paces, strict=False))
    return f"{name}[{','.join(places)}]"
