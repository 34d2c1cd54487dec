"""Loops without undo copies of arrays that they overwrite completely: after an error Python does it again."""

from typing import Any

import numpy as np
import pytest
from as_written import as_written
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.jit.loops.sites import loop_requests, run_loop

pytestmark = pytest.mark.eager(eager_below=0)

THOMAS = """
def f(a, b, c, d, out):
    n = b.shape[1]
    out[:, 0] = d[:, 0] / b[:, 0]
    for k in range(1, n):
        factor = 1.0 / (b[:, k] - c[:, k - 1] * a[:, k])
        out[:, k] = (d[:, k] - out[:, k - 1] * a[:, k]) * factor
"""
FLOATS = """
def f(a, b, c, d, out):
    for k in range(b.shape[0]):
        out[k] = float(d[k, 0]) / float(b[k, 3])
"""
PLACES = """
def f(a, b, c, d, out):
    for k in range(b.shape[0]):
        out[k] = d[a[k, 0].astype(np.int64)] / b[k]
"""


def inputs(*zeros: tuple[int, int]) -> list[np.ndarray]:
    made = list(np.random.default_rng(5).random((5, 40, 30)))
    made[1] += 4.0
    for place in zeros:
        made[1][place], made[0][place] = 0.0, 0.0
    return made


@pytest.mark.parametrize("source", [THOMAS, FLOATS])
@pytest.mark.parametrize("zeros", [(), [(7, 3)], [(0, 2), (39, 29), (20, 3)]])
@pytest.mark.parametrize(("action", "state"), [
    ("always", {}),
    ("error", {}),
    ("always", {"all": "raise"}),
    ("always", {"divide": "raise", "invalid": "ignore"}),
    ("always", {"all": "ignore"}),
])  # fmt: skip
def test_results_are_those_of_python(source: str, zeros: Any, action: str, state: Any) -> None:
    f = written(source)
    fast, slow = dc.accelerate(f), dc.accelerate(written(source))
    for _ in range(2):
        got = outcome(fast, inputs(*zeros), action, **state)
        want = as_written(outcome, slow, inputs(*zeros), action, **state)
        assert got[:2] == want[:2] and got.texts == want.texts
        if action == "always" and "raise" not in state.values():  # else more than NumPy's is computed
            want = as_written(outcome, f, inputs(*zeros), action, **state)
            assert got[:2] == want[:2] and got.texts == want.texts


def test_an_index_out_of_bounds_ends_the_loop() -> None:
    f = written(PLACES, np=np)
    fast = dc.accelerate(f)
    for place in (0, 17):
        arrays = inputs()
        arrays[0][place, 0] = 77.0
        got, want = outcome(fast, arrays), as_written(outcome, f, arrays)
        assert got == want and want.result[0] is IndexError


def test_completely_overwritten_arrays_have_no_undo_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    told: list[tuple[str, ...]] = []

    drawn = loop_requests.LoopRequest.plan_input

    def noted(self: Any) -> Any:
        made = drawn(self)
        if self.loop.source.startswith("for"):  # not the statements before it
            told.append((made.payload.rewritten, tuple(sorted(made.saved))))
        return made

    monkeypatch.setattr(run_loop, "may_stop", lambda allowed: False)  # by signals: then there are copies
    monkeypatch.setattr(run_loop, "_copied", lambda a: kept.append(a) or a.copy())
    monkeypatch.setattr(loop_requests.LoopRequest, "plan_input", noted)
    f = dc.accelerate(written(THOMAS))
    for _ in range(2):
        f(*inputs())
    assert told == [(("out_1",), ())] and not kept
    with np.errstate(all="raise"):
        f(*inputs())
    assert len(kept) == 2  # also of the statements before the loop
    del told[:]
    f = dc.accelerate(written(FLOATS))  # which raises ZeroDivisionError
    f(*inputs())
    assert told == [((), ("out_1",))]
