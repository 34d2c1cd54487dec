"""The length at which recordings of several ranks are flushed."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.distributed.array_distribution import distribute
from dcarray.recording.log import ENTRIES_TOGETHER
from dcarray.recording.session import session


@pytest.mark.parametrize("ranks", [2, 3])
def test_recordings_of_several_ranks_are_longer(ranks: int) -> None:
    plain = np.arange(24.0) % 5

    def turn(a: np.ndarray, b: np.ndarray) -> None:
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a[1:-1] = 0.5 * (b[:-2] + b[2:])

    def program() -> None:
        a, b = (distribute(plain) for _ in "ab")
        lengths = []
        for _ in range(400):
            turn(a, b)
            lengths.append(len(session().rec.log))
        runs = sum(map(int.__lt__, lengths[1:], lengths))
        assert runs > 1 and ENTRIES_TOGETHER - 40 < max(lengths) < ENTRIES_TOGETHER + 40
        want = plain.copy(), plain.copy()
        for _ in range(400):
            turn(*want)
        assert np.array_equal(a, want[0]) and np.array_equal(b, want[1])

    dc.comm.run(ranks, program)
