"""What elements take, where NumPy has loops over vectors and where it has not."""

import numpy as np
import pytest

from dcarray.tiering import cost_model, op_costs

N = 100_000


@pytest.fixture(params=[False, True], ids=["one by one", "vectors"])
def vectors(request, monkeypatch):
    monkeypatch.setattr(op_costs, "_vectors", lambda: request.param)
    monkeypatch.setattr(op_costs, "_serves", lambda name: not request.param)
    return request.param


def cheaper(name, loop, number=None, threads=1):
    """Has NumPy one operation on N elements done sooner?"""
    values = {"d": np.array([0.0 if number is None else number])}
    arguments = [(0, None, None)] if len(loop) == 4 else [(0, None, None), 0]
    log = [
        ("old", "d", (N,), None, 0),
        ("new", loop[-1], (N,), 1),
        ("map", name, loop, (N,), 1, None, *arguments),
    ]
    return cost_model.eager_elements(cost_model.estimate(log, (1,), 1, threads, values=values))


def test_what_kernels_have_sooner_is_theirs_also_on_one_thread(vectors):
    assert bool(cheaper("exp", "d->d")) == bool(cheaper("power", "dd->d", -1.5)) == vectors
    assert cheaper("negative", "d->d")


def test_what_numpys_loops_do_for_kernels_is_theirs_on_several_threads(vectors):
    assert cheaper("log", "d->d") and cheaper("power", "dd->d", 0.7) and cheaper("exp", "f->f")
    assert bool(cheaper("log", "d->d", threads=2)) == bool(cheaper("exp", "d->d", threads=2)) == vectors


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 2.0])
def test_roots_and_reciprocals_are_no_powers(vectors, exponent):
    assert op_costs.element_costs("power", "dd->d", exponent) == op_costs.element_costs("sqrt", "d->d")


@pytest.mark.parametrize("exponent", [np.nan, np.inf, -np.inf, 5.0, 0.7])
def test_other_exponents_are_the_librarys(vectors, exponent):
    theirs, ours = op_costs.element_costs("power", "dd->d", exponent)
    assert theirs == ours


def test_where_numpy_says_nothing_it_may_have_vectors(monkeypatch):
    monkeypatch.delattr("numpy._core._multiarray_umath.__cpu_targets_info__")
    assert op_costs._vectors.__wrapped__()


def test_what_waits_for_memory_is_worth_one_pass():
    """Two operations in place, of which the first has to be found harmless before anything is overwritten."""
    for n, numpys in ((1_000_000, True), (4_000_000, False)):
        steps = [("map", name, "dd->d", (n,), 0, None, (0, None, None), 0) for name in ("add", "multiply")]
        guess = cost_model.estimate([("old", "d", (n,), None, 0), *steps], (), 2, 2, [0])
        assert bool(cost_model.eager_elements(guess)) == numpys


def test_an_array_that_is_there_in_two_shapes_is_one():
    n = 5_000_000
    old = [("old", "d", (n,), None, 0), ("old", "d", (100, n // 100), None, 0)]
    fold = ("fold", "add", "d->d", (100, n // 100), (0,), False, 2, (1, None, None))
    guess = cost_model.estimate([*old, ("new", "d", (n // 100,), 2), fold], (2,), 1, 2)
    assert not cost_model.eager_elements(guess)
    assert guess.region < 0.6 * guess.numpy


def test_numpy_converts_part_by_part():
    def guess(char, n):
        log = [("old", char, (n,), None, 0), ("new", "l", (), 1),
               ("fold", "add", "l->l", (n,), (0,), False, 1, (0, None, None))]  # fmt: skip
        return cost_model.estimate(log, (1,), 1, 2)

    for char in "?bi":
        assert cost_model.eager_elements(guess(char, N)) and not cost_model.eager_elements(
            guess(char, 2_000_000)
        )
        assert guess(char, N).numpy > guess("l", N).numpy + 1.5e-10 * N


def test_a_second_thread_is_of_no_use_after_a_library_that_has_its_own(monkeypatch):
    monkeypatch.setattr(op_costs, "_vectors", lambda: False)
    n = 64
    old = [("old", "d", (500, n), None, 0), ("old", "d", (n, n), None, 1)]
    product = ("call", "blas.matmul", (2,), ((0, None, None), (1, None, None)), ())
    for called, first in ((True, 2), (False, 0)):
        log = [
            *old, *([("new", "d", (500, n), 2), product] if called else []),
            ("new", "d", (500, n), 2 + called), ("new", "d", (500, n), 3 + called),
            ("map", "tanh", "d->d", (500, n), 2 + called, None, (first, None, None)),
            ("map", "add", "dd->d", (500, n), 3 + called, None, (2 + called, None, None), (0, None, None)),
        ]  # fmt: skip
        assert bool(cost_model.eager_elements(cost_model.estimate(log, (3 + called,), 3, 2))) == called
