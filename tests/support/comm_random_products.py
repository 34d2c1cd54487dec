"""Random products of two arrays in random layouts."""

from typing import Any

from comm_layouts import layouts
from hypothesis import strategies as st

from dcarray.comm.layout.layouts import Layout

__all__ = ["cases"]

SUBSCRIPTS = [
    "mk,kn->mn", "mk,kn->nm", "km,nk->mn", "bmk,bkn->bmn", "bmk,kn->bmn", "mk,bkn->bmn", "mk,k->m", "k,kn->n",
    "km,k->m", "k,k->", "m,n->mn", "bk,bk->b", "mkl,kln->mn", "mki,kn->mn", "cbk,kn->cbn", ",n->n",
    "mn,mn->mn",
]  # fmt: skip
DTYPES = ["f4", "f8", "c8", "c16", "i4", "u1", "?", "i8", "f2"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    subscripts = draw(st.sampled_from(SUBSCRIPTS))
    (a, b), out = subscripts[: subscripts.index("-")].split(","), subscripts[subscripts.index(">") + 1 :]
    extent = {x: 1 if x == "i" else draw(st.integers(0, 9)) for x in sorted({*a, *b})}
    ranks = draw(st.integers(1, 12))
    shapes = [tuple(extent[x] for x in letters) for letters in (a, b, out)]
    found = []
    for shape in shapes:
        layout = draw(layouts(shape, ranks))
        found.append(Layout(layout.shape, layout.grid, layout.axes))
    wanted = found[2] if draw(st.booleans()) else None
    return subscripts, *found[:2], wanted, draw(st.sampled_from(DTYPES)), draw(st.sampled_from(DTYPES))
