"""What the tests of passes share: run a pass on text, and check that it keeps the meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.dims import evaluate
from dcarray.ir.nodes import Region
from dcarray.ir.passes import Log, Pass
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

SYMBOLS = {"N": 9, "M": 7, "K": 6}


def memory(region: Region, seed: int = 0) -> dict[str, np.ndarray]:
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    made = {}
    for array in region.arrays:
        if array.role in ("in", "inout") and array.base is None:
            shape = tuple(evaluate(n, SYMBOLS) for n in array.shape)
            made[array.name] = rng.integers(1 if array.dtype.kind == "u" else -3, 4, shape).astype(
                array.dtype
            )
    return made


def meaning(region: Region, seed: int = 0) -> dict[str, tuple[str, bytes]]:
    """The bits of every result."""
    with np.errstate(all="ignore"):
        results = interp.run(region, memory(region, seed), SYMBOLS)
    return {
        name: (str(value.dtype), np.ascontiguousarray(value).tobytes()) for name, value in results.items()
    }


def apply(one: Pass | Callable[[Region, Log], Region], text: str, log: Log) -> str:
    """The text after a pass, which is checked to be valid, to mean the same, and to be final."""
    before = parse(text)
    verify(before)
    fn = one.fn if isinstance(one, Pass) else one
    after = fn(before, log)
    verify(after)
    assert parse(dump(after)) == after
    assert meaning(after) == meaning(before)
    if after is not before:
        assert after != before, "a pass that changes nothing returns the same object"
    again = fn(after, Log())
    assert again is after, f"not final:\n{dump(again)}"
    return dump(after)


@pytest.fixture(scope="session")
def check() -> Callable[..., Log]:
    """``check(pass, before, after)``: the golden texts; indentation does not count."""

    def run(one: Pass | Callable[[Region, Log], Region], before: str, after: str | None) -> Log:
        log = Log()
        found = apply(one, before, log)
        wanted = dump(parse(before if after is None else after))
        assert found == wanted, f"found:\n{found}\nlog:\n{log}"
        if after is None:
            fn = one.fn if isinstance(one, Pass) else one
            region = parse(before)
            assert fn(region, Log()) is region
        return log

    return run


@pytest.fixture(scope="session")
def same_meaning() -> Callable[[Region, Region], None]:
    """``same_meaning(before, after)``: bit for bit, on some inputs."""

    def run(before: Region, after: Region) -> None:
        for seed in range(2):
            assert meaning(after, seed) == meaning(before, seed), f"{dump(before)}\n->\n{dump(after)}"

    return run
