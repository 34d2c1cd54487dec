"""The launches of drivers as numbers: they are those that the drivers make."""

import struct
from typing import Any

import numpy as np
import pytest

from dcarray.ir import dims
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.program.native_launches import NO_ARRAY, TEMPORARY, native_launches

CHAIN = """region() {
  in A: f64[5000];  temp T: f64[5000];  out S: f64[];  out B: f64[4000]
  T[i] = sqrt(multiply(A[i], 2.0)) for i<5000
  S[] add= T[i] init 0.0 for i<5000
  B[i] = multiply(T[i], S[]) for i<4000
}
"""
SIZED = """region(n: int>=1) {
  in A: f64[n, 8];  out B: f64[n];  out C: f64[n, 8]
  B[i] add= A[i, j] init 0.0 for i<n, j<8
  C[i, j] = subtract(A[i, j], B[i]) for i<n, j<8
}
"""


class Noting:
    """Takes the place of a launch, and notes what it gets."""

    def __init__(self, launch: Any, blocks: list[tuple[int, ...]]) -> None:
        self._launch, self._blocks = launch, blocks

    def __call__(self, packed: bytes, threads: int) -> int:
        self._blocks.append(struct.unpack(f"{len(packed) // 8}q", packed))
        flags: int = self._launch(packed, threads)
        return flags


@pytest.mark.parametrize(("text", "sizes"), [(CHAIN, {}), (SIZED, {"n": 5}), (SIZED, {"n": 300})])
def test_launches_are_those_of_the_driver(text: str, sizes: dict[str, int]) -> None:
    plan = compile_region(parse(text), "cpu")
    found = native_launches(plan.run)
    assert found is not None
    assert (found.temporary > 0) == ("temp" in text)
    names = plan.run.__globals__
    blocks: list[tuple[int, ...]] = []
    for name in [name for name in names if name.startswith("_k")]:
        names[name] = Noting(names[name], blocks)
    shapes = {a.name: [dims.evaluate(n, sizes) for n in a.shape] for a in plan.region.arrays}
    arrays = [np.ones(shapes[name]) for name in plan.arrays]
    addresses = [a.ctypes.data for a in arrays]
    assert plan.run(arrays, addresses, [*sizes.values()], 1) == 0
    assert len(found.launches) == len(blocks) > 0
    numbers = iter(found.numbers(*sizes.values()))
    bases = set()
    for launch, block in zip(found.launches, blocks, strict=True):
        for at, seen in zip(launch.places, block, strict=True):
            number = next(numbers)
            if at == TEMPORARY:
                bases.add(seen - number)
            else:
                assert seen == number + (0 if at == NO_ARRAY else addresses[at])
    assert not [*numbers]
    assert len(bases) == ("temp" in text)


def test_other_drivers_are_called() -> None:
    assert native_launches(compile_region(parse(CHAIN), "c").run) is None
    assert native_launches(print) is None
