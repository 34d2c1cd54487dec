"""What becomes of recorded programs: kernels, copies, compilations; and when a plan must not be reused."""

import textwrap

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.plans import templates


@pytest.fixture(autouse=True)
def compiled():
    with dc.options(eager_below=0, jit="eager", debug=True):
        dc.evaluate()
        yield


def kernels(f, *args):
    """How many kernels a call runs, and its result."""
    dc.evaluate(*args)
    dc.report(reset=True)
    result = f(*args)
    dc.evaluate(*result) if isinstance(result, tuple) else dc.evaluate(result)
    report = dc.report()
    assert report.interpreted == 0 and not report.fallbacks
    return report.kernels, result


def random(*shape):
    a = np.random.default_rng(7).random(shape)
    return a, dc.asarray(a.copy())


def jacobi(A, B):
    B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
    return B


def fdtd(ex, ey, hz):
    ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
    ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
    hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def hdiff(f, c):
    lap = 4.0 * f[1:-1, 1:-1, :] - (f[2:, 1:-1, :] + f[:-2, 1:-1, :] + f[1:-1, 2:, :] + f[1:-1, :-2, :])
    flx = lap[1:, 1:-1, :] - lap[:-1, 1:-1, :]
    flx = np.where(flx * (f[2:-1, 2:-2, :] - f[1:-2, 2:-2, :]) > 0, 0, flx)
    fly = lap[1:-1, 1:, :] - lap[1:-1, :-1, :]
    fly = np.where(fly * (f[2:-2, 2:-1, :] - f[2:-2, 1:-2, :]) > 0, 0, fly)
    return f[2:-2, 2:-2, :] - c * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("program", "shapes", "most"),
    [
        (jacobi, [(40, 50), (40, 50)], 1),
        (fdtd, [(30, 40)] * 3, 3),
        (hdiff, [(20, 24, 8), (16, 20, 8)], 2),
        (softmax, [(30, 64)], 3),
        (lambda x, y: (x - y) ** 2 + np.sqrt(x) * np.where(x > y, 1.0, y), [(500,)] * 2, 1),
        (lambda x: (x + 1, x * 2, (x - 3) / 2), [(500,)], 1),
        (lambda x: x[1:][::2][3:-1][::-1] + 0.5, [(500,)], 1),
    ],
    ids=["jacobi", "fdtd", "hdiff", "softmax", "chain", "three outputs", "slices"],
)
def test_kernels_of_programs(program, shapes, most):
    plain = [random(*s)[0] + 0.1 * k for k, s in enumerate(shapes)]
    ours = [dc.asarray(a.copy()) for a in plain]
    n, result = kernels(program, *ours)
    want = program(*plain)
    for x, a in zip(
        result if isinstance(result, tuple) else (result,),
        want if isinstance(want, tuple) else (want,),
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(x), a, rtol=1e-13)
    assert n <= most


def test_gemm_and_its_epilogue():
    (a, x), (b, y), (c, z) = random(30, 40), random(40, 20), random(30, 20)
    n, r = kernels(lambda p, q, s: p @ q + s, x, y, z)
    np.testing.assert_allclose(np.asarray(r), a @ b + c, rtol=1e-13)
    assert n == 1  # the addition; the product is one library call
    text = str(dc.explain(lambda: x @ y + z))
    assert text.count("blas.matmul") >= 1


def test_growing_slices_compile_once():
    (a, w), (b, x), (c, y) = random(40), random(40), random(40)
    dc.report(reset=True)
    counts = []
    for k in range(1, 40):
        y[:k] += w[k] * x[:k]
        c[:k] += a[k] * b[:k]
        dc.evaluate(y)
        r = dc.report()
        counts.append(r.compiles + r.cache_hits + r.disk_hits)
        np.testing.assert_array_equal(np.asarray(y), c)
    assert counts[-1] == counts[4], counts  # nothing was even looked up again


def test_a_plan_is_not_reused_where_it_does_not_hold():
    def shift(v, k, j):
        v[k : k + 10] = v[j : j + 10] * 2 + v[0]
        return v

    for k, j in [(10, 30), (11, 31), (12, 20), (15, 22), (22, 15), (5, 5), (7, 6), (6, 7), (10, 30), (33, 4)]:
        a, x = random(50)
        np.testing.assert_array_equal(np.asarray(shift(x, k, j)), shift(a, k, j))


def test_sizes_may_change_in_any_way():
    for n, m in [(5, 7), (6, 7), (6, 6), (9, 4), (1, 7), (7, 1), (2, 2), (100, 3), (1, 1)]:
        a, x = random(n, m)
        b, y = random(m)
        np.testing.assert_array_equal(np.asarray(x[1:] + x[:-1] * y), a[1:] + a[:-1] * b)
        np.testing.assert_allclose(np.asarray((x * 2 + y).sum(axis=0)), (a * 2 + b).sum(axis=0), rtol=1e-14)
        np.testing.assert_allclose(np.asarray(x.T @ x), a.T @ a, rtol=1e-13)
        x += y
        a += b
        np.testing.assert_array_equal(np.asarray(x), a)


def test_liveness_is_part_of_the_key():
    a, x = random(30)
    for keep in (True, False, True):
        t = x + 1
        u = t * 2
        if not keep:
            del t
        np.testing.assert_array_equal(np.asarray(u), (a + 1) * 2)
        if keep:
            np.testing.assert_array_equal(np.asarray(t), a + 1)


def test_scalars_are_arguments():
    a, x = random(30)
    dc.evaluate(x * 0.5 + 1)
    dc.report(reset=True)
    for s in (0.25, 3.0, -1.5, 7.0):
        np.testing.assert_array_equal(np.asarray(x * s + 1), a * s + 1)
    assert dc.report().plan_hits == 4


_CHILD = """
    import os, sys, numpy as np, dcarray as dc
    with dc.options(eager_below=0, jit="eager", cache_dir=sys.argv[1]):
        x = dc.asarray(np.arange(60.0).reshape(6, 10))
        for k in range(3):
            y = np.sqrt(x[:, k:] * 2 + 1).sum(axis=1) + x[:, 0]
            y = np.where(y > 3, y, 0) @ x
            np.asarray(y)
    print(dc.report().compiles, float(np.asarray(y).sum()))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    def child():
        done = python("-c", textwrap.dedent(_CHILD), tmp_path / "cache")
        return done.stdout.split()

    first, second = child(), child()
    assert int(first[0]) > 0 and int(second[0]) == 0
    assert first[1] == second[1]


def test_functions_have_numpys_bits_unless_fastmath_says_otherwise():
    a = np.random.default_rng(1).normal(size=5000)
    want = np.power(np.exp(a), 2.7)
    for fastmath, equal in ((False, True), (True, False), (False, True)):
        with dc.options(fastmath=fastmath):
            x = dc.asarray(a)
            got = np.asarray(np.power(np.exp(x), 2.7))
        assert np.array_equal(got, want) is equal
        np.testing.assert_allclose(got, want, 1e-14)


def test_what_cannot_be_compiled_is_interpreted(monkeypatch):
    from dcarray.lowering.cpu.schedules import scheduler
    from dcarray.lowering.errors import Unsupported

    def refuse(*args):
        raise Unsupported("for this test")

    monkeypatch.setattr(scheduler, "schedule", refuse)
    dc.report(reset=True)
    x = dc.asarray(np.arange(77.0))
    np.testing.assert_array_equal(
        np.asarray(np.trunc(x / 7) * x), np.trunc(np.arange(77.0) / 7) * np.arange(77.0)
    )
    report = dc.report()
    assert report.interpreted == 1 and any("for this test" in f.function for f in report.fallbacks)


def test_a_broken_compiler_is_said_once_and_served(monkeypatch):
    from dcarray.lowering import targets

    def fail(self, source):
        raise OSError("no compiler here")

    monkeypatch.setattr(type(targets.get("cpu")), "compile", fail)
    x = dc.asarray(np.arange(78.0))
    with dc.options(cache_dir=""), pytest.warns(RuntimeWarning, match="no compiler here") as caught:
        for shift in (3, 4):
            want = np.floor(np.arange(78.0) / shift) ** 3 + shift
            np.testing.assert_allclose(np.asarray(np.floor(x / shift) ** 3 + shift), want)
    assert len(caught) == 1


def test_a_bug_in_a_pass_is_said_once_and_served(monkeypatch):
    from dcarray.ir.passes.pass_manager import Pipeline

    def fail(*args, **kwargs):
        raise AssertionError("a pass went wrong")

    monkeypatch.setattr(Pipeline, "run", fail)
    x = dc.asarray(np.arange(79.0))
    with dc.options(debug=False), pytest.warns(RuntimeWarning, match="a pass went wrong") as caught:
        for n in (79, 78, 77):
            want = np.ceil(np.arange(n) / 3) * 2 - np.arange(n)
            np.testing.assert_array_equal(np.asarray(np.ceil(x[:n] / 3) * 2 - x[:n]), want)
    assert len(caught) == 1


def test_evaluate_looks_into_containers():
    x = dc.asarray(np.arange(5.0))
    for box in ([x + 1], (x + 1,), {"a": [x + 1]}):
        assert dc.evaluate(box) is box
    assert dc.evaluate(x + 1, x + 2)[1][0] == 2


def test_a_long_loop_is_few_regions():
    a, x = random(12, 13)
    b, y = random(12, 13)
    dc.report(reset=True)
    for A, B in ((x, y), (a, b)):
        for _ in range(200):
            jacobi(A, B)
            B *= 1.01
            jacobi(B, A)
    np.testing.assert_array_equal(np.asarray(x), a)
    report = dc.report()
    assert report.flushes - report.plan_hits <= 4, report


def test_what_a_sum_is_taken_of_is_not_stored():
    (a, x), (b, y) = random(300), random(300)
    dc.evaluate()
    dc.report(reset=True)
    total = float(((x - y) ** 2).sum())  # not in an assert, which would hold the difference
    assert total == pytest.approx(((a - b) ** 2).sum(), rel=1e-14)
    report = dc.report()
    assert report.kernels == 1 and report.bytes < 3 * a.nbytes  # two reads and one number
    dc.evaluate()
    assert dc.report().kernels == 1  # and nothing is left to do


def test_what_a_sum_was_taken_of_may_still_be_read():
    (a, x), (b, y) = random(300), random(300)
    for _ in range(3):
        d, e = x - y * 2, a - b * 2
        assert float(d.max()) == e.max()
        assert float(np.sum(d * d)) == pytest.approx((e * e).sum(), rel=1e-14)
        x += 1  # after d was taken
        a += 1
        np.testing.assert_array_equal(np.asarray(d), e)
        np.testing.assert_array_equal(np.asarray(d + x), e + a)
    plain = np.asarray(y)  # from now on y may change under our feet
    d = x + y
    total = float(d.sum())
    plain[:] = 0
    assert float(d.sum()) == total
    with np.errstate(divide="ignore"):
        q = x / 0
        assert float(q.max()) == np.inf
    np.testing.assert_array_equal(np.asarray(q), np.full(300, np.inf))


def test_places_that_only_look_alike_share_no_plan() -> None:
    assert templates.are_related(tuple(range(40)), tuple(range(7, 47)))
    assert not templates.are_related(tuple(range(40)), tuple(k * k for k in range(40)))
