"""The floor: kept memory and shared loops beneath NumPy, each in a process of its own."""

import os
import textwrap
from pathlib import Path

import numpy as np
import pytest
from fresh import python
from resident import resident

from dcarray.core.native import BUILT

pytestmark = pytest.mark.skipif(not BUILT, reason="the floor is in the C module")

BEGIN = """
    import os, random, sys, threading, warnings
    import numpy as np
    from dcarray.core import floor
    floor.install()
"""
BIG = 1 << 21  # elements: 16 MiB of float64


def run(program: str, **environment: str) -> list[str]:
    """Run a program on the floor and return the lines that it prints."""
    text = textwrap.dedent(BEGIN) + textwrap.dedent(program)
    done = python("-c", text, **{"OMP_NUM_THREADS": "2", **environment})
    return done.stdout.splitlines()


# ---- memory -------------------------------------------------------------------------------------------
def test_arrays_keep_what_is_written_and_new_ones_are_zero_where_they_should() -> None:
    """Arrays of three threads are made, resized and dropped at random."""
    assert run("""
        def work(seed):
            r, live = random.Random(seed), []
            for k in range(400):
                chosen, size = r.random(), int(2 ** r.uniform(15, 22.5))
                if chosen < 0.45 or not live:
                    zeros = r.random() < 0.4
                    a = np.zeros(size, np.uint8) if zeros else np.empty(size, np.uint8)
                    assert not zeros or not a.any()
                    a[:] = seed + k & 255
                    live.append((a, seed + k & 255))
                elif chosen < 0.9:
                    a, value = live.pop(r.randrange(len(live)))
                    assert (a == value).all()
                else:
                    a, value = live[r.randrange(len(live))]
                    old = a.size
                    a.resize(size, refcheck=False)
                    assert (a[:old] == value).all() and not a[old:].any()
                    a[:] = value
                live = live[30:] if len(live) > 60 else live
            assert all((a == value).all() for a, value in live)
            ended.append(seed)

        ended = []
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        [t.start() for t in threads], [t.join() for t in threads]
        facts = floor.facts()
        bounded = facts["kept"] <= 1.07 * facts["most"] + 2**23
        print(len(ended), facts["in_use"], facts["reused"] > facts["mapped"], bounded)
    """) == ["3 0 True True"]  # fmt: skip


def test_memory_that_was_used_is_used_again_without_new_pages() -> None:
    (told,) = run("""
        import resource
        def faults():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        a = np.ones(1 << 21)
        for _ in range(3):
            b = a * 2 + a
        before = faults()
        for _ in range(20):
            b = a * 2 + a
        print(faults() - before)
    """, DCARRAY_FLOOR="memory")  # fmt: skip
    assert int(told) < 500  # a new array has 4,096 pages, or 8 huge ones


def test_arrays_of_many_sizes_come_from_kept_memory_again_and_again() -> None:
    """Free blocks between those in use do not fit the next arrays, unless some more are kept."""
    (told,) = run("""
        r = random.Random(1)
        sizes = [int(2 ** r.uniform(17.5, 21.8)) for _ in range(30)]
        for step in range(40):
            live = []
            for k, size in enumerate(sizes):
                live.append(np.empty(size, np.uint8))
                if len(live) > 12:
                    live.pop(k * 7 % 12)
        print(floor.facts()["mapped"])
    """, DCARRAY_FLOOR="memory")  # fmt: skip
    assert int(told) < 40


def test_what_is_kept_is_given_back_for_what_is_new() -> None:
    """All memory, used and kept, is little more than was used at once."""
    (told,) = run("""
        from resident import resident
        before = resident()
        most = 0
        for k in range(12):
            a = np.ones((16 << 17) + (k << 17))  # 16 MiB, and each time more
            most = max(most, resident() - before)
            del a
        print(most < (28 << 20) * 1.1 + (4 << 20))
    """, DCARRAY_FLOOR="memory", PYTHONPATH=os.path.dirname(resident.__code__.co_filename))  # fmt: skip
    assert told == "True"


def test_zeros_that_are_not_written_take_no_memory() -> None:
    (told,) = run("""
        from resident import resident
        a = np.ones(1 << 22)
        del a
        before = resident()
        a = np.zeros(1 << 23)
        print(resident() - before < a.nbytes // 8, a.any())
    """, PYTHONPATH=os.path.dirname(resident.__code__.co_filename))  # fmt: skip
    assert told == "True False"


def test_memory_that_is_not_there_is_said_as_numpy_says_it() -> None:
    assert run("""
        import resource
        for shape in (1 << 50,), (1 << 62, 1 << 62), (-1, 5):
            try:
                np.empty(shape)
            except (MemoryError, ValueError) as error:
                print(error)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        a = np.ones(80 << 17)  # 80 MiB
        del a
        b = [np.ones(200_000) for _ in range(100)]  # 160 MiB
        print(sum(x[-1] for x in b))
        try:
            np.ones(1 << 28)
        except MemoryError as error:
            print(error)
    """, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1") == [
        "Unable to allocate 8.00 PiB for an array with shape (1125899906842624,) and data type float64",
        "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.",
        "negative dimensions are not allowed",
        "100.0",
        "Unable to allocate 2.00 GiB for an array with shape (268435456,) and data type float64",
    ]  # fmt: skip


def test_a_forked_child_has_memory_of_its_own() -> None:
    assert run("""
        a = np.ones(1 << 21)
        dropped = np.ones(1 << 21)
        del dropped
        if os.fork() == 0:
            a[:] = 2
            b = np.exp(np.zeros(1 << 21))
            os._exit(7 if a[0] == 2 and (b == 1).all() else 1)
        b = np.exp(np.zeros(1 << 21))
        print(os.waitstatus_to_exitcode(os.wait()[1]), a.sum() == a.size, (b == 1).all())
    """) == ["7 True True"]  # fmt: skip


def test_tracemalloc_sees_each_array() -> None:
    assert run("""
        import tracemalloc
        tracemalloc.start()
        a = np.ones(1 << 21)
        b = a + 1
        print(tracemalloc.get_traced_memory()[0] // (1 << 20))
        del a, b
        print(tracemalloc.get_traced_memory()[0] // (1 << 20), np._core.multiarray.get_handler_name())
    """) == ["32", "0 default_allocator"]  # fmt: skip


# ---- threads ------------------------------------------------------------------------------------------
CALLS = """
    def calls(n):
        r = np.random.default_rng(5)
        a, b = r.standard_normal(n), r.standard_normal(n)
        i, c, f = r.integers(-9, 9, n), a + 1j * b, a.astype(np.float32)
        d = np.datetime64("2026-01-01") + i.astype("m8[D]")
        yield from (a + b, a * 2, np.exp(a), np.sqrt(np.abs(a)), a > b, np.where(a > b, a, b), a == 1, a ** 2)
        yield from (i // 3, i % 3, -i, i ^ 5, ~i, i ** 2, np.gcd(i, 6), np.divmod(i, 4)[1], np.ldexp(a, i))
        yield from (c * c, np.abs(c), np.exp(c), f * f, np.tanh(f), np.hypot(f, f), d + 1, d < d[5])
        yield from (f.astype(float), a.astype(int), np.float16(a) + 1, np.modf(a)[0], np.frexp(a)[1])
        yield from (np.logical_and(a > 0, b > 0), np.maximum(a, b), np.arctan2(a, b), np.isnan(a))
        yield from (a[::2] + b[::2], a[::-1] * b, np.spacing(a), np.add.outer(a[:300], a))
        x = a.copy()
        x += b
        x[1:] += x[:-1]  # overlaps: NumPy takes a copy
        np.multiply(x, 2, out=x)
        np.add(x[1:], x[:-1], out=x[1:])
        np.sin(x, out=x, where=i > 0)
        yield x
        y = np.zeros(n // 2 * 2)
        np.add(a[: n // 2], 1, out=y[::2])
        yield y
        m = a[: n // 8 * 8].reshape(8, -1)
        yield from (m.sum(0), m.sum(1), m.max(0), np.add.accumulate(m, 0), m.T + 1, m + m[0])
        yield from (np.cumsum(a), np.add.reduce(a))
        for length in (1, 2, 3, 7, 8, 9, 130, 1000):
            q = np.resize(a, (2, 1 + n // (2 * length), length))
            for w in (q, q.astype(np.float32), q[0], (10 * q).astype(int), -0.0 * q, q * 1e-310):
                yield from (w.sum(-1), w.max(-1, keepdims=True), np.min(w, axis=w.ndim - 1), w.prod(-1))
                yield from (w.mean(-1), w.var(-1), np.maximum.reduce(w, -1), w.sum((-2, -1)), w.T.sum(-1))
            yield from ((q > 0).any(-1), np.all(q > -1, axis=-1), (q > 2).all(2))
        z = np.resize(a + 1j * b, (3 + n // 100, 97))
        for w in (z, z.T, z[::-2], z.astype(np.complex64), np.resize(z, (5, 1 + n // 500, 32))):
            for k in (0, -1):
                yield from (np.fft.fft(w, axis=k), np.fft.ifft(w, 64, axis=k), np.fft.rfft(w.real, axis=k))
                yield from (np.fft.irfft(w, axis=k), np.fft.fft(w, axis=k, out=np.empty(w.shape, w.dtype)))
            v = w.copy()
            np.fft.fft(v, axis=0, out=v)
            yield v
        twice = np.zeros(2 * len(z) + 97, complex)  # rows overlap in it: the one that is written last counts
        np.fft.fft(z, out=np.lib.stride_tricks.as_strided(twice, z.shape, (16, 16)))
        yield twice
        np.add.at(y, np.abs(i), 1.0)
        yield y
        rows, counts = a[: n // 50 * 50].reshape(-1, 50)[:, 1:-1], i[: n // 50 * 50].reshape(-1, 50)[:, 3:]
        inner = np.resize(b, (n // 500 + 2, 5, 100))[1:-1, :, 2:]
        for w in (rows, counts, inner, inner.transpose(1, 0, 2), rows[::-1], rows[:, ::2], counts.T):
            yield np.subtract(w, w[:, :1], out=...)
            yield np.subtract(w, 1, out=...)
            yield from (w + w, 2 * w, w - w[:1], -w, w > w.mean(), np.sqrt(np.abs(w)), np.maximum(w, 0))
            w += w
            w[1:] -= w[:-1]
            np.multiply(w[:-1], 2, out=w[1:])
            np.multiply(w, 2, w, where=w > 0)
            yield w
        x, y, z = np.resize(a, (3, 1 + n // 60, 20)), np.resize(b, (1 + n // 60, 1)), np.resize(b, (3, 1, 20))
        for p, q in ((x, y), (z, x), (y[:300], z), (x, b[:20]), (x[..., ::2], z[..., ::2]), (x, z[..., ::-1]),
                     (y[:300], y[:300].T), (x, x[0]), (x[..., :3], y), (x[..., :2], x[:1, :, 1:3])):
            yield from (p - q, p > q, np.hypot(q, p), np.add(np.float32(p), np.float32(q)), -p + q)
        for k in (2, 3, 5):  # short rows
            p = np.resize(a, (1 + n // k, k))
            for q in (p[: 40 + n % 200], np.float32(p[:100]), np.resize(i, (64, k)), p[:99, ::-1], 1j * p):
                q = q[:200]
                yield from (q[:, None] - q, q * q[:, None, :1], q[None, :, :2] / q[::2, None, 1:2])
            p /= p[0]
            p += p[:, 1:2]  # overlaps
            np.subtract(p, p[:, :1] * 0.5, out=p)
            yield from (p, p * p[:, :1], 2.0 - p[:, ::-1], p[1:] + p[:-1])
        c, w = x > y, np.where(x > y, x, 2.0)
        f = np.float32(x)
        numbers = ((x, 0.5), (2, w), (1.0, 0), (1, 2), (f, 0.1), (x, True), (x, np.float64(3)), (x, 2**70))
        for p, q in (*numbers, (x, w), (f, -f), (c, x < 0), (x + 1j, x), (x, y), (x, w.T.copy().T)):
            yield np.where(c, p, q)
        yield from (np.where(c[:, ::2], x[:, ::2], 0.0), np.where(x, x, 1.0), np.where(c)[0])
        for out in (x, x[:, ::2]):
            out -= out.mean(-1, keepdims=True)
            out *= out[:1]  # overlaps
            np.add(out, out[..., :1], out=out)
            np.subtract(out, z[:, :, :1], out=out[::-1])
            np.multiply(out[:1], y[: out.shape[1]], out=out)
            yield out
        yield np.add(np.array(2.5), x.T)
"""


def test_results_have_numpys_bits() -> None:
    program = (
        CALLS
        + """
    import hashlib
    for n in (100, 40_000, 300_007, 300_007):  # the first large call of a loop is measured
        for k, made in enumerate(calls(n)):
            print(n, k, made.dtype, made.shape, made.strides, hashlib.md5(made.tobytes()).hexdigest())
    """
    )
    wanted = run(program, DCARRAY_FLOOR="off")
    assert run(program, DCARRAY_FLOOR="on") == wanted


@pytest.mark.parametrize("call", ["np.exp(a)", "np.fft.fft(a, axis=0)"])
def test_threads_share_the_loops_of_large_arrays(call: str) -> None:
    (told,) = run(f"""
        a = np.ones((1 << 11, 1 << 10))
        for _ in range(5):
            {call}
        print(floor.facts()["shared"])
    """)
    assert int(told) >= 3


@pytest.mark.parametrize("threads", ["1", "2"])
def test_warnings_and_errors_are_numpys(threads: str) -> None:
    program = """
        a = np.ones(1 << 20)
        for _ in range(3):
            a / a, np.exp(a), np.sqrt(a)
        for k in (5, 1_000_000):  # in the part of one thread or of the other
            b = a.copy()
            b[k] = 0
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                a / b
                a.reshape(1024, -1)[:, 1:] / b.reshape(1024, -1)[:, 1:]
                np.exp(a * 1000)
                np.sqrt(b - 1)
                np.log(b)
            print([(str(one.message), one.lineno) for one in told])
            try:
                with np.errstate(all="raise"):
                    a / b
            except FloatingPointError as error:
                print(error)
            with np.errstate(all="call", call=lambda *what: print(what)):
                a / b
            try:
                (a * 3).astype(int) ** -1
            except ValueError as error:
                print(error)
    """
    assert run(program, OMP_NUM_THREADS=threads) == run(program, DCARRAY_FLOOR="off")


SMALL = """
    import itertools

    r = np.random.default_rng(1)
    given = [r.standard_normal(n) for n in (1, 3, 3, 8)] + [r.integers(-5, 5, 3), np.ones((3, 3))]
    given += [given[2].astype(np.float32), np.array([True, False, True]), given[1] + 1j, np.eye(3).T]
    given += [r.integers(0, 9, 3, np.uint8), np.arange(9.0)[::3], np.array(2.5), 2.5, 2, -1, 1e300, True]
    given += [np.float32(0.1), np.int8(100), [1.0, 2.0, 3.0], np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])]
    given += [np.array([1, "a", 3], object), "x", 1j, 2**70, np.array(["2026-01-01"] * 3, "M8[D]")]
    given += [np.zeros(0), np.zeros(3, ">f8"), np.array([0, np.inf, np.nan])]
    names = "add subtract multiply divide floor_divide remainder power maximum hypot equal less logical_and"

    def told(function, *args, **kwargs):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                made = function(*args, **kwargs)
                made = type(made), getattr(made, "dtype", None), getattr(made, "strides", None), repr(made)
            except Exception as error:
                made = type(error).__name__, str(error)
            print(made, [str(one.message) for one in said])

    for name in names.split():
        for p, q in itertools.product(given, given):
            told(getattr(np, name), p, q)
    for name in "negative exp sqrt log absolute isnan invert logical_not sign reciprocal rint square".split():
        for p in given:
            told(getattr(np, name), p)
            told(getattr(np, name), p, out=np.zeros(3))
            told(getattr(np, name), p, np.zeros(3, int))
    for q in given:
        fixed = np.broadcast_to(1.0, 3)
        for out in np.zeros(3), np.zeros(3, int), np.eye(3), np.zeros(2), None, (np.zeros(3),), fixed, ..., 5:
            told(np.add, given[1], q, out=out)
            told(np.multiply, given[1], q, out)
            told(np.maximum, given[1], q, out)
            told(np.add, given[1], q, out, where=given[7])
        x = np.arange(5.0)
        told(np.add, x[1:4], q, x[:3])
        told(np.subtract, x[1:4], q, out=x[1:4])
        x[:3] += x[2:]
        x *= 0.5
        told(x.__iadd__, q)
"""


REDUCED = """
    given += [np.arange(4000.0)[::-7], np.zeros(300, bool), -np.zeros(3), np.full(3, 1e308)]
    given += [r.standard_normal(1000).astype(np.float32), np.full(9, 2**63, np.uint64)]
    given += [r.integers(0, 2**60, 50), -np.zeros((4, 3)), np.full((4, 9), 1e308), r.random((3, 40, 3))]
    given += [np.zeros((0, 3)), np.zeros((3, 0)), np.ones((3, 1)), np.eye(4)[:, ::2], np.matrix(np.eye(3))]
    given += [r.random((4, 300)).astype(np.float32), np.eye(5) > 0, np.array([[0, np.nan], [np.inf, 1]])]
    for x, name in itertools.product(given, "sum max min prod any all mean std argmax ptp".split()):
        function = getattr(np, name)
        told(function, x)
        told(getattr(x, name, None))
        told(function, x, out=np.zeros(()))
        for text in "axis=0 axis=-1 axis=1 keepdims=True keepdims=0 dtype=float initial=3 where=True".split():
            key, _, value = text.partition("=")
            told(function, x, **{key: eval(value)})
        told(function, x, where=x == x)
    for x in given:
        for ufunc in np.add, np.maximum, np.logical_and, np.subtract, np.hypot:
            told(ufunc.reduce, x)
            told(ufunc.reduce, x, None, None, None, False)
            told(ufunc.reduce, array=x, axis=0)
            told(ufunc.reduce, x, axis=2**70)
            told(ufunc.reduce)
"""


def test_short_reductions_are_numpys() -> None:
    told = run(SMALL.partition("    for name in names")[0] + REDUCED, DCARRAY_FLOOR="on")
    assert told == run(SMALL.partition("    for name in names")[0] + REDUCED, DCARRAY_FLOOR="off")
    assert len(told) > 5_000


def test_short_calls_are_numpys() -> None:
    told = run(SMALL, DCARRAY_FLOOR="on")
    assert told == run(SMALL, DCARRAY_FLOOR="off")
    assert len(told) > 10_000


def test_an_unknown_part_is_an_error() -> None:
    with pytest.raises(AssertionError, match="DCARRAY_FLOOR='both' is no part of the floor: on, memory"):
        run("", DCARRAY_FLOOR="both")


def test_off_is_off() -> None:
    assert run("print(floor.facts())", DCARRAY_FLOOR="off") == ["{}"]
    assert np.exp(np.zeros(BIG)).all()


def test_the_floor_comes_with_numpy(tmp_path: Path) -> None:
    """A program that does not import NumPy runs without it; one that does finds NumPy's own loader."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, importlib.util\nspec = importlib.util.find_spec('numpy')\n"
        "print(hasattr(spec.loader, 'get_code'), 'numpy' in sys.modules)\n"
        "import numpy as np\nfrom dcarray.core import floor\n"
        "print(type(np.__loader__).__name__, np.__spec__.loader is np.__loader__, *floor.parts())\n"
    )
    done = python("-m", "dcarray", "run", script, DCARRAY_FLOOR="calls")
    assert done.stdout == "True False\nSourceFileLoader True calls\n"


def test_a_hot_program_that_cannot_import_numpy_is_pythons(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sys, time
        sys.modules["numpy"] = None
        def work(n):
            s = 0
            for i in range(n):
                s += i * i % 7
            return s
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            found = work(400)
        print(found, sys.modules["numpy"])
        """)
    )
    done = python("-m", "dcarray", "run", script)
    assert (done.stdout, done.stderr) == ("798 None\n", "")
