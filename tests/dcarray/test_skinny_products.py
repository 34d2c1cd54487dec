"""Products of a large matrix with few rows: recorded, worth a plan, and made by its own code."""

import numpy as np
import pytest
import recorded_products

import dcarray as dc
from dcarray.lowering.runtime import skinny_products
from dcarray.recording import session
from dcarray.tiering import blas_sharing


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    monkeypatch.setattr(skinny_products, "MIN_BYTES", 1 << 17)
    for known in ("_entries", "_templates"):  # plans that other tests have asked for
        monkeypatch.setattr(session.EXECUTOR, known, {})
    return recorded_products.served(monkeypatch)


@pytest.mark.parametrize("form", ["x @ w", "np.dot(x, w)", "x @ w + 1", "w.T @ x.T", "np.maximum(x @ w, 0)"])
def test_alone_and_with_others(form: str, served: list[tuple[int, ...]]) -> None:
    r = np.random.default_rng(0)
    plain = {"x": r.standard_normal((4, 200)), "w": r.standard_normal((200, 300))}
    want = eval(form, {"np": np, **plain})
    wrapped = {name: dc.asarray(value) for name, value in plain.items()}
    with dc.options(jit="eager", cache_dir=None):
        for _ in range(2):
            got = np.asarray(eval(form, {"np": np, **wrapped}))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert len(served) == 2


def test_its_time_counts_as_such_that_a_plan_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of nothing else would get no plan."""
    from dcarray.plans import background

    monkeypatch.setattr(background, "PATIENCE", 1e-7)
    r = np.random.default_rng(1)
    x, w = dc.asarray(r.random((4, 500))), dc.asarray(r.random((500, 600)))
    executor = session.EXECUTOR
    before = executor.background.seconds
    with dc.options(jit="background", cache_dir=None):
        for _ in range(3):
            np.asarray(x @ w)
        executor.background.wait()
        assert executor.background.seconds > before


@pytest.mark.parametrize(("a", "b", "char", "found"), [
    ((8, 30_000), (30_000, 100), "f", True), ((2, 4, 30_000), (30_000, 100), "d", True),
    ((30_000,), (30_000, 100), "d", False), ((100, 300), (300, 300), "d", False),
    ((8, 30_000), (30_000, 100), "D", False), ((8, 30), (30, 100), "d", False),
    ((30_000, 500), (500, 3), "d", True), ((2, 8, 3000), (2, 3000, 100), "d", False),
])  # fmt: skip
def test_which(a: tuple[int, ...], b: tuple[int, ...], char: str, found: bool) -> None:
    assert blas_sharing.is_skinny_product(a, b, char) is found
