"""What does not run as a whole runs call by call: neither bugs nor failed allocations harm any array."""

import warnings

import numpy as np
import pytest
from resident import resident

import dcarray as dc
from dcarray.execution import executor, interpreter, run_plan
from dcarray.ir import build, interp
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.lowering import compilation
from dcarray.lowering.cpu.llvm.libraries import LIBRARIES
from dcarray.lowering.cpu.schedules import scheduler
from dcarray.lowering.libraries import dispatch
from dcarray.lowering.runtime import array_memory, library_calls
from dcarray.plans import templates
from dcarray.recording import log_format, session

MODES = [pytest.param({"eager_below": 0, "jit": jit}, id=jit) for jit in ("eager", "off", "background")]


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No plan is known from another test, and no reason has been told."""
    dc.evaluate()
    monkeypatch.setattr(executor, "_reported", set())
    monkeypatch.setattr(executor, "_unreported", [])
    engine = executor.Executor()
    monkeypatch.setattr(session, "EXECUTOR", engine)
    yield
    engine.background.wait()


def program(x, y, w):
    """Statements of every kind: in place, overlapping, reshaped, reduced, cast, products, temporaries."""
    a = x * 2 + y
    x += 1
    x[1:] = x[:-1] * 0.5
    b = np.where(a > 3, x, -y).reshape(4, 6)
    b *= 2
    t = b.T @ w
    n = (a * 10).astype(np.int32)
    n //= 3
    s = b.sum(axis=0) + t.max(axis=1)
    y[::-1] += n + s.reshape(-1).repeat(1)[:1]
    return a, b, t, n, s, (x > y).any(axis=0, keepdims=True), np.sqrt(a + 1j)


def given():
    rng = np.random.default_rng(3)
    return rng.random(24), rng.random(24), rng.random((4, 6))


def check(names, ours, plain, what=""):
    for name, got, want in zip(names, ours, plain, strict=True):
        got = np.asarray(got)
        assert got.dtype == want.dtype and got.shape == want.shape, (what, name)
        np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=f"{what} {name}")


def agree(what=""):
    """Does the program agree with NumPy, also the second and third time?"""
    for _ in range(3):
        plain = given()
        ours = [dc.asarray(a.copy()) for a in plain]
        want = program(*plain)
        got = program(*ours)
        check("abtnsru", got, want, what)
        check("xyw", ours, plain, what)


def broken(*args, **kwargs):
    raise ZeroDivisionError("for this test")


PLACES = [
    (Pipeline, "run"), (build, "build"), (compilation, "compile_region"),
    (scheduler, "schedule"), (interp, "run"),
    (log_format, "split"), (templates.LogTemplate, "__init__"), (templates.TemplatePlan, "__init__"),
    (templates, "_matcher"),
    (templates.ExecutablePlan, "bytes"), (executor.Executor, "prepare"), (templates.PlanEntry, "find_plan"),
    (build._Builder, "_map"), (build._Builder, "_call"), (run_plan, "allocate"),
]  # fmt: skip


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize(("where", "name"), PLACES, ids=[f"{a.__name__}.{b}" for a, b in PLACES])
def test_a_bug_anywhere_is_served_call_by_call(monkeypatch, options, where, name):
    monkeypatch.setattr(where, name, broken)
    with dc.options(**options), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agree()
    told = [str(w.message) for w in caught if "for this test" in str(w.message)]
    assert len(told) <= 1


@pytest.mark.parametrize("options", MODES)
def test_it_is_said_once_and_reported(monkeypatch, options):
    monkeypatch.setattr(log_format, "split", broken)
    dc.report(reset=True)
    with (
        dc.options(**options),
        pytest.warns(RuntimeWarning, match="call by call: ZeroDivisionError") as caught,
    ):
        x = dc.asarray(np.arange(9.0))
        for k in range(4):
            np.testing.assert_array_equal(np.asarray(x * k), np.arange(9.0) * k)
    assert len(caught) == 1 and caught[0].filename == __file__
    found = [f for f in dc.report().fallbacks if "for this test" in f.function]
    assert sum(f.count for f in found) == 4 and __file__ in found[0].where


def test_debugging_raises(monkeypatch):
    monkeypatch.setattr(Pipeline, "run", broken)
    with dc.options(eager_below=0, jit="eager", debug=True):
        x = dc.asarray(np.arange(9.0)) * 2
        with pytest.raises(ZeroDivisionError):
            dc.evaluate(x)
    np.testing.assert_array_equal(np.asarray(x), np.arange(9.0) * 2)


class Short:
    """Memory that runs out at one of the allocations, and is there again afterwards."""

    def __init__(self, monkeypatch, fails):
        self.left = fails
        self.plain = array_memory.allocate
        for module in (interpreter, run_plan):
            monkeypatch.setattr(module, "allocate", self.allocate)

    def allocate(self, shape, dtype):
        self.left -= 1
        if -3 < self.left <= 0:  # the whole fails, and then a part of it
            raise MemoryError("for this test")
        return self.plain(shape, dtype)


@pytest.mark.parametrize("options", MODES)
def test_memory_that_runs_out_anywhere(monkeypatch, options):
    for fails in range(1, 40):
        with monkeypatch.context() as patch, dc.options(**options):
            Short(patch, fails)
            plain = given()
            ours = [dc.asarray(a.copy()) for a in plain]
            got = None
            while got is None:
                try:
                    got = program(*ours)
                except MemoryError:  # a call failed: begin again
                    ours = [dc.asarray(a.copy()) for a in plain]
            want = program(*plain)
            for _ in range(6):
                try:
                    dc.evaluate(got, ours)
                    break
                except MemoryError:
                    continue
            check("abtnsru", got, want, fails)
            check("xyw", ours, plain, fails)


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError])
def test_a_library_that_fails_after_something_was_written(monkeypatch, options, error):
    def fail(*args):
        raise error("for this test")

    found = LIBRARIES["blas.matmul"][0]
    monkeypatch.setitem(LIBRARIES, "blas.matmul", [dispatch.Library("x", found.serves)])
    monkeypatch.setitem(library_calls.IMPLEMENTATIONS["blas.matmul"], "x", fail)
    with dc.options(**options), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree()


@pytest.mark.parametrize("options", MODES)
def test_what_cannot_be_had_stays_out_of_the_way(options):
    with dc.options(**options):
        x = dc.asarray(np.arange(1000.0))
        y = x * 2
        wide = np.broadcast_to(x[:1], (1 << 50, 1)) * y[2]
        x += 1
        z = x * 3
        for _ in range(2):
            with pytest.raises(MemoryError):
                dc.evaluate(wide)
            with pytest.raises(MemoryError):
                dc.evaluate()
            np.testing.assert_array_equal(np.asarray(y), np.arange(1000.0) * 2)
            np.testing.assert_array_equal(np.asarray(z), np.arange(1000.0) * 3 + 3)
            assert float((z - y).sum()) == (np.arange(1000.0) + 3).sum()
        x -= 1
        np.testing.assert_array_equal(np.asarray(x), np.arange(1000.0))
        some = wide[5:7] + 1  # of what is still pending, with the values that were there
        with pytest.raises(MemoryError):
            np.asarray(some)
        del wide
        if options["jit"] == "eager":  # nothing has to be stored of what nobody holds
            np.testing.assert_array_equal(np.asarray(some), [[1.0], [1.0]])
        del some
        dc.evaluate()
        np.testing.assert_array_equal(np.asarray(x + z), np.arange(1000.0) * 4 + 3)


@pytest.mark.parametrize("options", MODES)
def test_a_call_that_failed_does_not_happen_later(options):
    with dc.options(**options):
        target = np.zeros(3)
        x = dc.asarray(np.arange(3.0))
        wide = np.broadcast_to(x, (1 << 50, 3)) + 1
        with pytest.raises(MemoryError):
            np.add(wide[0], x, out=target)
        del wide
        dc.evaluate()
        assert not target.any()
        np.add(x, x, out=target)
        np.testing.assert_array_equal(target, x + x)


def test_warnings_are_kept_when_the_rest_fails():
    with dc.options(eager_below=0, jit="off"):
        x = dc.asarray(np.zeros(3))
        y = x / x
        wide = np.broadcast_to(x, (1 << 50, 3)) + 1
        with pytest.warns(RuntimeWarning, match="invalid value"), pytest.raises(MemoryError):
            dc.evaluate(wide)
        assert np.isnan(np.asarray(y)).all()


def test_many_turns_with_something_left_stay_bounded():
    with dc.options(eager_below=0, jit="off"):
        x = dc.asarray(np.zeros(3))
        wide = np.broadcast_to(x, (1 << 50, 3)) + 1.5
        for k in range(700):
            x = x * 1.0 + k
            np.asarray(x)
        np.testing.assert_array_equal(np.asarray(x), [sum(range(700))] * 3)
        assert len(wide.dtype.char) == 1


def test_flags_whose_author_is_not_found_are_still_said(monkeypatch):
    with dc.options(eager_below=0, jit="eager"):
        x = dc.asarray(np.arange(3.0))
        dc.evaluate(np.log(x + 1) / (x + 1))
        monkeypatch.setattr(interpreter.OpByOp, "run", broken)
        x -= 1
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            got = np.asarray(np.log(x + 1) / (x + 1))
        assert np.isneginf(got[0])


@pytest.mark.parametrize("jit", ["eager", "background"])
def test_a_compiler_without_memory_is_asked_again(monkeypatch, jit):
    from dcarray.lowering.program import code_cache

    def fail(nbytes):
        raise MemoryError("for this test")

    with dc.options(eager_below=0, jit=jit), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = dc.asarray(np.arange(61.0))
        engine = session.EXECUTOR
        for short in (True, False):
            with monkeypatch.context() as patch:
                if short:
                    patch.setattr(code_cache, "require", fail)
                    patch.setattr(code_cache, "_LOADED", {})
                for n in (61, 61, 60, 59, 58):
                    for _ in range(2):
                        want = np.arange(float(n)) * 3 - np.arange(float(n))[::-1] / 7
                        np.testing.assert_array_equal(np.asarray(x[:n] * 3 - x[:n][::-1] / 7), want)
                        engine.background.wait()
                if short:
                    dc.report(reset=True)
        assert dc.report().kernels > 0 and dc.report().interpreted <= 8


def test_without_a_thread_to_compile_in(monkeypatch):
    import threading

    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with dc.options(eager_below=0, jit="background", cache_dir=None):
        x = dc.asarray(np.arange(62.0))
        dc.report(reset=True)
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x * 5 - 3), np.arange(62.0) * 5 - 3)
            session.EXECUTOR.background.wait()
        assert dc.report().kernels > 0


CHOICES = (
    "x[:] = np.where(m, y, x)", "x[:] = np.where(m, x, y)", "x[m] = y[m]", "x[m] = 2.5",
    "x[1:] = np.where(m[1:], x[:-1], y[1:])", "x[1:] = np.where(m[1:], y[1:], x[:-1])",
    "x[::-1] = np.where(m, y, x)", "x[::2] = np.where(m[::2], y[1::2], x[::2])",
    "m[:] = np.where(m, x < y, m)", "m[1:] = np.where(m[:-1], x[1:] < y[1:], False)",
    "x[:] = np.where(m, 1.0, x)", "x[:] = np.where(m, x, 0)",
    "x = np.where(m, y, x)", "x[3:9] = np.where(m[:6], np.float32(3), 4)", "x[:] = np.where(x < y, y, x)",
)  # fmt: skip


@pytest.mark.parametrize("text", CHOICES)
def test_choices_between_arrays_that_may_share_memory(text):
    rng = np.random.default_rng(5)
    plain = {"x": rng.random(24), "y": rng.random(24), "m": rng.random(24) < 0.5}
    with dc.options(eager_below=0, jit="off"):
        wrapped = {name: dc.asarray(a.copy()) for name, a in plain.items()}
        wrapped["x"] += 1  # so that something is pending
        plain["x"] += 1
        exec(text, {"np": np}, wrapped)
        exec(text, {"np": np}, plain)
        for name, a in plain.items():
            np.testing.assert_array_equal(np.asarray(wrapped[name]), a)


@pytest.mark.parametrize("text", ["0", "0.0", "-0.0", "False", "1", "np.float32(-0.0)", "np.int8(0)"])
@pytest.mark.parametrize("dtype", "?bdfDl")
def test_zeros_of_either_sign(text, dtype):
    value = eval(text)
    with dc.options(eager_below=0, jit="off"):
        for n in (3, 1 << 18):
            used = dc.full(n, 1).astype(dtype) + np.ones((), dtype)
            used.sum()
            del used  # whose memory is there again
            got, want = dc.full((n,), value).astype(dtype), np.full((n,), value).astype(dtype)
            assert np.asarray(got).tobytes() == want.tobytes()
            part = dc.zeros((2, n), dtype)
            part[1] = value
            np.testing.assert_array_equal(part, [np.zeros(n, dtype), want])


@pytest.mark.parametrize("text", [
    "x + y", "y - x", "i * x", "f * x", "c * x", "x ** i", "i / f", "np.arctan2(f, x)", "np.ldexp(x, b)",
    "np.hypot(b, x)", "i << b", "m + i", "m < x", "i // b", "np.where(m, i, x)", "np.maximum(i, f)", "x % i",
    "f / b", "np.copysign(f, i)",
])  # fmt: skip
def test_operands_of_other_dtypes_are_converted_part_by_part(text):
    """Large ones are not converted as a whole, and nothing else is different."""
    rng = np.random.default_rng(9)
    n = 1 << 18
    plain = {
        "x": rng.normal(size=n) * 100, "y": rng.normal(size=n), "i": rng.integers(-9, 9, n),
        "m": rng.random(n) < 0.5, "f": rng.random(n, np.float32), "b": rng.integers(0, 7, n).astype(np.int8),
        "c": rng.random(n) * 1j,
    }  # fmt: skip

    def run(names):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = np.asarray(eval(text, {"np": np}, names))
        return made, sorted(str(one.message) for one in told)

    with dc.options(eager_below=0, jit="off"):
        wrapped = {name: dc.asarray(a.copy()) for name, a in plain.items()}
        (got, said), (want, meant) = run(wrapped), run(plain)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    assert said == meant


def test_zeros_that_are_not_written_take_no_memory():
    with dc.options(eager_below=0, jit="off"):
        before = resident()
        made = dc.zeros(1 << 22)
        made[5] = 1
        dc.evaluate()
        assert resident() - before < made.nbytes // 4
        assert made.sum() == 1
