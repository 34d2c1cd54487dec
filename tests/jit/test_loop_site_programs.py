"""Random programs with loops in functions, plain and accelerated."""

from functools import partial
from typing import Any

import loop_programs
import numpy as np
import pytest
from loop_functions import alike, arguments, function, outcome

import dcarray as dc


@pytest.mark.parametrize("mode", ["warn", "ignore", "raise"])
def test_random_loops(mode: Any) -> None:
    served = 0
    for seed in range("wir".index(mode[0]), 36, 3):
        source, sums = loop_programs.program(seed)
        f, given = function(source), loop_programs.names(seed)
        args = partial(arguments, given)
        dc.report(reset=True)
        with np.errstate(all=mode), dc.options(jit="eager", cache_dir=None):
            want, got = outcome(f, args()), outcome(dc.accelerate(f), args())
            alike(want[:2], got[:2], sums)
            if want[2] != got[2]:
                with dc.options(jit="off"):
                    assert outcome(dc.accelerate(f), args())[2] == got[2], source
        served += dc.report().loops
    assert served >= 4
