"""What nothing but a recording keeps alive is not many arrays."""

from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.store import Store
from dcarray.recording import session

pytestmark = pytest.mark.one_process("several ranks keep blocks")


@pytest.mark.parametrize("options", [{"jit": "off"}, {"jit": "eager"}])
def test_a_loop_that_adds_up_what_numpy_makes(options: Any) -> None:
    a = np.random.default_rng(5).random((300, 600))
    held, total = [], np.zeros(a.shape)
    with dc.options(eager_below=0, **options):
        x, found = dc.asarray(a), dc.asarray(total)
        for k in range(20):
            made = np.sort(x * float(k), axis=0)
            found += made * 2.0
            total += np.sort(a * float(k), axis=0) * 2.0
            slots = session.session().rec.slots
            held.append(sum(type(s) is Store and s.mem is not None for s in slots))
        np.testing.assert_array_equal(np.asarray(found), total)
    assert max(held) * a.nbytes < session.HELD_TOGETHER + 4 * a.nbytes


def test_what_one_turn_has_left_is_gone_before_a_library_works_again() -> None:
    a = np.random.default_rng(6).random((300, 500)) + 1j
    held, total = [], np.zeros(a.shape, complex)
    session.session().flush()  # what is pending from before would be counted, too
    with dc.options(eager_below=0, jit="off"):
        x, found = dc.asarray(a), dc.asarray(total)
        for k in range(12):
            slots = session.session().rec.slots
            held.append(sum(type(s) is Store and s.mem is not None for s in slots))
            made = np.sort(x, axis=k % 2)
            found += made * (2.0 + k)
            total += np.sort(a, axis=k % 2) * (2.0 + k)
        np.testing.assert_array_equal(np.asarray(found), total)
    assert max(held) <= 3  # the sum, the last result, and the one before


def test_what_the_user_holds_counts_for_nothing() -> None:
    with dc.options(eager_below=0, jit="off"):
        arrays = [dc.asarray(np.full(1 << 18, float(k))) for k in range(8)]
        total = arrays[0] * 2.0
        for x in arrays[1:]:
            total = total + x
        assert len(session.session().rec.log) >= 16
        assert np.asarray(total)[0] == 28.0
