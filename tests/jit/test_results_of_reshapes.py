"""Reshaped arrays that a run or a loop gives back: their memory, and who shares it, are as NumPy's."""

from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager


PROGRAMS = {
    "of an argument": ["y = x.reshape(4, 6)", "return y, y + 1"],
    "transposed": ["y = (x * 2).reshape(4, 6).T", "return y, y + 1"],
    "and its transpose": ["a = (x * 2).reshape(4, 6)", "return a.T, a"],
    "and a part": ["a = (x * 2).reshape(4, 6)", "y = a[1:, ::2]", "return y, a"],
    "and what it is of": ["y = x * 2", "a = y.reshape(4, 6)", "return y, a"],
    "of what lies otherwise": ["y = (x.T * 2).reshape(6, 2, 2)", "return y, y * 2"],
    "in a loop": ["for k in range(3):", "    y = (x * k).reshape(4, 6).T", "    x = x + 1", "return y, x"],
    "of a name in a loop": [
        "for k in range(3):", "    y = x + k", "    z = y.reshape(4, 6).T", "    w = z[1:]", "return w, z, y",
    ],
}  # fmt: skip


def made(f: Any) -> Any:
    """What a function gives, how that lies in memory, and what shares it."""
    x = np.arange(24.0).reshape(2, 12)
    found = f(x)
    every = (x, *found)
    sharing = [[np.shares_memory(a, b) for a in every] for b in every]
    return (
        [a.tolist() for a in found],
        [a.strides for a in found],
        [a.flags.writeable for a in found],
        sharing,
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory(name: str) -> None:
    text = "\n    ".join(["def f(x):", *PROGRAMS[name]])
    want = made(written(text))
    f = dc.accelerate(written(text))
    for _ in range(3):
        assert made(f) == want
