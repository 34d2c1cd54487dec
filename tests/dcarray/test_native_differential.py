"""Random programs with the C extension and without: the same values, dtypes, errors and warnings."""

from pathlib import Path

import pytest
from fresh import python

from dcarray.core.native import BUILT

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 400
OUTCOMES = """
import sys
if sys.argv[1] == "without":
    sys.modules["dcarray._native.extension"] = None
import numpy as np, dcarray as dc
from conformance.programs import perform
from conformance.writer import program
from dcarray.core.native import BUILT

assert BUILT == (sys.argv[1] == "with")


def described(value):
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(one) for one in value]
    a = np.asarray(value)
    if a.dtype.kind in "fc":  # the sign and payload of a NaN are nobody's promise
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    listed = a.dtype.hasobject or a.dtype.char in "gG"  # which has bytes that nobody writes
    return type(value).__name__, a.dtype.str, a.shape, a.tolist() if listed else a.tobytes()


with np.errstate(all="ignore"), dc.options(jit="off"):
    for seed in range(int(sys.argv[2])):
        rounds = [
            ([(line, raised, sorted(said)) for line, raised, said in events],
             {name: described(value) for name, value in values.items()})
            for events, values in perform(program(seed), True)
        ]
        print(seed, repr(rounds).encode("unicode_escape").decode())
"""


def outcomes(which: str) -> list[str]:
    done = python("-c", OUTCOMES, which, PROGRAMS, cwd=ROOT)
    return done.stdout.splitlines()


@pytest.mark.skipif(not BUILT, reason="the extension was not built")
def test_random_programs_do_the_same_with_the_extension_and_without() -> None:
    ours, pythons = outcomes("with"), outcomes("without")
    assert len(ours) == PROGRAMS
    different = [a.split()[0] for a, b in zip(ours, pythons, strict=True) if a != b]
    assert not different, f"programs {different} of conformance.writer"
