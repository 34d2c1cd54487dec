"""Products that are added to an array in place: which ones are one call, and that they mean the same."""

import random
from collections.abc import Callable

from dcarray.ir.nodes import Region
from dcarray.ir.parse import parse
from dcarray.ir.passes import Log
from dcarray.ir.passes.portable.product_updates import PRODUCT_UPDATES
from dcarray.ir.verify import VerifyError, verify


def test_golden(golden):
    golden(PRODUCT_UPDATES)


def _region(rng: random.Random) -> Region:
    """Products and updates of parts of few arrays, which overlap and change in between."""

    def part(name: str) -> str:
        row, column = rng.choice(("ij", "ij", "ij", "ji"))
        return f"{name}[{row}+{rng.choice((0, 0, 3, 1))},{column}+{rng.choice((0, 3))}"

    def change(name: str) -> str:
        place = part(name) + "]"
        return f"{place} = negative({place}) for i<3, j<3"

    lines = []
    for t in "tu":
        a, b, r = (part(rng.choice("abc")) for _ in range(3))
        lines.append(f"call blas.matmul({a} for i<3, j<3], {b} for i<3, j<3]) -> {t}")
        lines += [change(rng.choice("abc")) for _ in range(rng.choice((0, 0, 1)))]
        own = rng.choice((r, r, r, part("c"))) + "]"
        terms = [f"{t}[i,j]", rng.choice((own, f"multiply(c0[], {own})", f"multiply({own}, 0.5)"))]
        rng.shuffle(terms)
        lines.append(f"{r}] = {rng.choice(('add', 'subtract'))}({', '.join(terms)}) for i<3, j<3")
    if rng.random() < 0.3:
        lines = ["for k in range(0, 2, 1) {", *lines, "}"]
    names = "inout a: f64[6, 6];  inout b: f64[6, 6];  inout c: f64[6, 6];  in c0: f64[]"
    return parse("\n".join(["region() {", names, "temp t: f64[3, 3];  temp u: f64[3, 3]", *lines, "}"]))


def test_random_updates(same_meaning: Callable[[Region, Region], None]) -> None:
    made = 0
    for seed in range(150):
        before = _region(random.Random(seed))
        try:
            verify(before)
        except VerifyError:  # a statement that reads what it writes, at other points
            continue
        after = PRODUCT_UPDATES.fn(before, Log())
        verify(after)
        same_meaning(before, after)
        made += after is not before
    assert made > 30
