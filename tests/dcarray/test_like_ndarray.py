"""The less usual parts of ndarray's face, small and large."""

import copy
import operator
import pickle
import sys

import numpy as np
import pytest

import dcarray as dc


@pytest.fixture(params=["small", "large"])
def way(request):
    with dc.options(**({} if request.param == "small" else {"eager_below": 0, "jit": "off"})):
        yield


def test_flat(way):
    x = dc.asarray(np.arange(12.0).reshape(3, 4))
    mask = x.ravel() > 6
    assert type(x.flat[mask]) is dc.ndarray and x.flat[mask].tolist() == [7, 8, 9, 10, 11]
    y = x + 1  # a pending reader of what is written next
    x.flat[dc.asarray([0, 5])] = dc.asarray([-1.0, -2.0])
    assert (x[0, 0], x[1, 1]) == (-1, -2)
    assert (y[0, 0], y[1, 1]) == (1, 6)
    assert isinstance(x.flat, np.flatiter) and x.flat.base is x and len(x.flat) == 12
    assert list(x.flat) == x.ravel().tolist()
    assert np.asarray(x.flat).tolist() == x.ravel().tolist()
    assert type(x.flat == 3.0) is np.ndarray
    plain = np.arange(12.0).reshape(3, 4)
    plain.flat[x.flat == 3.0] = 9  # an iterator of NumPy's takes no mask that is not NumPy's
    assert plain[0, 3] == 9 and plain.sum() == 72


def test_resize(way):
    x = dc.asarray(np.arange(6.0))
    x.resize((2, 4))
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]
    x.resize(3)
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="own its data"):
        x[1:].resize(7)


def test_real_conjugate_is_the_array(way):
    x = dc.asarray(np.arange(3.0))
    assert x.conj() is x
    assert (x * 1j).conj().tolist() == [0, -1j, -2j]


def test_writes_through_results_wait_for_readers(way):
    x = dc.asarray(np.arange(4.0))
    y = x + 1
    dc.asarray(np.ones((2, 4))).sum(axis=0, out=x)
    assert y.tolist() == [1, 2, 3, 4] and x.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickle(way, protocol):
    for x in (dc.arange(6).reshape(2, 3), dc.arange(6)[::2], dc.asarray(np.zeros(2, "i4,O"))):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert type(y) is dc.ndarray and y.dtype == x.dtype and y.tolist() == x.tolist()
        assert copy.deepcopy(x).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(dc.sin, protocol)) is dc.sin


def test_buffers_out_of_band(way):
    x = dc.arange(5)
    buffers = []
    y = pickle.loads(pickle.dumps(x, 5, buffer_callback=buffers.append), buffers=buffers)
    assert len(buffers) == 1
    x[0] = -1
    assert y[0] == -1


class _Other:
    __array_priority__ = 10.0

    def __add__(self, other):
        return "mine"

    __radd__ = __add__


def test_operators_defer_as_numpys(way):
    x = dc.arange(3)
    assert x + _Other() == "mine"
    assert _Other() + x == "mine"
    x += _Other()
    assert x == "mine"


class _Picky:
    """Takes NumPy's own arrays, and asks for them by their class, as sparse matrices do."""

    __array_priority__ = 10.1

    def _took(self, other):
        return np.asarray(other) * 2 if isinstance(other, np.ndarray) else NotImplemented

    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __matmul__ = __rmatmul__ = _took
    __and__ = __rand__ = _took
    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __divmod__ = __rdivmod__ = _took
    __hash__ = None


NAMES = "add sub mul truediv matmul and_ eq ne lt gt le ge iadd isub pow"
OPERATORS = [*[getattr(operator, name) for name in NAMES.split()], divmod]


@pytest.mark.parametrize("op", OPERATORS)
def test_operators_of_others_that_ask_for_the_class_of_arrays(way, op):
    def outcome(x, y):
        try:
            return op(x, y)
        except TypeError:
            return "no"

    for n in (3, 50000):
        for turned in (False, True):
            plain, ours = np.arange(n) + 1, dc.arange(n) + 1
            pairs = [(_Picky(), x) if turned else (x, _Picky()) for x in (plain, ours)]
            want, got = (outcome(*pair) for pair in pairs)
            assert type(got) is (dc.ndarray if type(want) is np.ndarray else type(want))
            assert np.array_equal(np.asarray(got), want)


def test_plain_arrays_by_the_name_that_others_ask_for(way):
    x = dc.asarray(np.arange(12.0).reshape(3, 4)) + 1
    plain = x.T.to_numpy()
    assert type(plain) is np.ndarray and plain.tolist() == (np.arange(12.0).reshape(3, 4).T + 1).tolist()
    plain[0, 0] = 7  # the same memory
    assert x[0, 0] == 7


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="NumPy 2.3 brought it")
def test_out_ellipsis(way):
    x = dc.asarray(np.array(1.0))
    assert type(dc.add(x, 2, out=...)) is dc.ndarray
    assert type(dc.add.reduce(dc.ones(3), out=...)) is dc.ndarray
    assert type(dc.add(x, 2)) is np.float64


def test_ndarray_of_memory(way):
    x = dc.arange(4)
    y = dc.ndarray((2,), x.dtype, x, 16)
    y[0] = 7
    assert x.tolist() == [0, 1, 7, 3]


def test_base_and_size(way):
    x = dc.arange(100)
    assert x[1:].base is x[2:].base is x[2:][1:].base
    assert x.base is None and x[:].base is not None and np.shares_memory(x[1:].base, x)
    assert sys.getsizeof(x) > x.nbytes > sys.getsizeof(x[1:])


def test_memory_that_kernels_do_not_know(way):
    buffer = np.zeros(8 * 1000 + 1, np.uint8)
    odd = dc.asarray(buffer[1:].view("f8"))
    x = dc.arange(1000.0)
    assert np.add(x, 1, out=odd) is odd
    odd += x
    assert np.array_equal(np.asarray(odd), 2 * np.arange(1000.0) + 1)
    plain = np.lib.stride_tricks.as_strided(np.zeros(60), (20, 20), (8, 16))
    ours = dc.asarray(np.lib.stride_tricks.as_strided(np.zeros(60), (20, 20), (8, 16)))
    plain += 1
    ours += 1
    assert np.array_equal(np.asarray(ours), plain)


@pytest.mark.parametrize("dtype", ["V4", "M8[s]", "i4,O", "O", "g"])
def test_other_dtypes_go_out_as_they_are(way, dtype):
    a = np.zeros(3, dtype)
    assert np.asarray(dc.asarray(a)).dtype == a.dtype


def test_nested_arrays_of_other_dtypes(way):
    assert np.array_equal(np.asarray(dc.array([dc.asarray(np.array("ab"))])), ["ab"])
    tiny = np.nextafter(np.longdouble(0), 1)
    assert dc.array([dc.asarray(np.asarray(tiny))])[0] == tiny
    ragged = dc.array([dc.zeros(2), [1]], dtype=object)
    assert type(ragged[0]) is dc.ndarray


def test_arrays_of_objects_keep_ours(way):
    x = dc.asarray(np.empty(2, object))
    inner = dc.arange(3)
    x[0] = inner
    assert x[0] is inner
    x[0] = 5
    assert x[0] == 5 and inner.tolist() == [0, 1, 2]
    x[:] = dc.asarray([1, 2])
    assert x.tolist() == [1, 2]


def test_copies_keep_the_order_where_numpys_do(way):
    plain = np.ones((3, 4, 2)).transpose(2, 0, 1)
    x = dc.asarray(plain)
    pairs = (copy.copy(plain), copy.copy(x)), (plain.copy("K"), x.copy("K")), (plain.copy(), x.copy())
    for theirs, ours in pairs:
        assert ours.strides == theirs.strides


def test_dtypes_keep_what_they_say(way):
    dtype = np.dtype("i", metadata={"a": 1})
    assert np.asarray(dc.zeros(3, dtype)).dtype.metadata == dtype.metadata
    assert dc.zeros(3, "i").astype(dtype).dtype.metadata == dtype.metadata


def test_mistakes_are_numpys(way):
    x = dc.zeros((3, 4)) + 1
    with pytest.raises(IndexError):
        x[0.0:, 0.0]
    with pytest.raises(TypeError):
        x.reshape(True, -1)
    with pytest.raises(ValueError, match="no device 'gpu'; the devices there are: cpu"):
        x.to_device("gpu")
    assert (dc.ones((1,) * 40) + 1).sum() == 2


def test_like_functions_in_the_order_of_another_shape(way):
    x = dc.asarray(np.ones((2, 3), order="F"))
    assert dc.ones_like(x, shape=(4, 3, 2), order="A").flags.f_contiguous
    assert dc.ones_like(x, shape=(4, 3, 2), order="K").flags.c_contiguous


def test_array_wrap_of_subclasses(way):
    class Sub(np.ndarray):
        pass

    x = dc.zeros(3)
    assert type(x.__array_wrap__(np.ones(2).view(Sub))) is dc.ndarray
    assert type(x.__array_wrap__(dc.asarray(np.float32(1)), None, True)) is np.float32


def test_methods_whose_function_takes_the_array_second(way):
    x = dc.asarray(np.arange(6.0).reshape(2, 3)) + 1
    assert x.compress([True, False, True], 1).tolist() == [[1, 3], [4, 6]]
    assert x.compress(condition=[0, 1], axis=0).tolist() == [[4, 5, 6]]
    line = x.reshape(-1) + 0
    assert line.compress(line > 4).tolist() == [5, 6]


def test_flags(way):
    x = dc.zeros((3, 4)) + 1
    part = x[1:]
    x.flags.writeable = False
    for write in ("x[...] = 2", "x[0, 1] = 2", "x += 1", "x[1:][0] = 2", "x[:, ::2] = dc.zeros((3, 2))"):
        with pytest.raises(ValueError, match="read-only"):
            exec(write)
    part += 1  # views that were there may still be written
    assert not x.flags.writeable and not x.flags["W"] and part.flags.writeable
    x.setflags(write=True)
    x[0] = 5
    assert x.sum() == 36 and x.flags.c_contiguous and "WRITEABLE : True" in repr(x.flags)
    assert x.flags == np.ones((3, 4)).flags and isinstance(x.flags, type(np.ones(1).flags))
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        dc.asarray(frozen[:]).flags.writeable = True


def _stepped(x, k, elements=iter):
    """Elements read while the array changes, and what is left of it."""
    seen = []
    for value in elements(x):
        x[k:] += value
        seen.append(float(value))
        if len(seen) == 5:
            break
    return seen, np.asarray(x)


def _between(x, elements=iter):
    through = elements(x)
    first = next(through)
    x *= 2
    second = next(through)
    x[2:] = 7
    return [float(first), float(second), *map(float, through)], np.asarray(x)


@pytest.mark.parametrize("elements", (iter, lambda x: x._elements()), ids=("own", "python"))
@pytest.mark.parametrize("limit", (0, 16))
def test_elements_are_read_when_they_are_asked_for(limit, elements):
    for n in (0, 1, 2, 9, 40):
        values = np.linspace(1.0, 2.0, 3 * n)
        for k in (0, 1, 3):
            if n > 1:
                expected = _stepped(values[:n].copy(), k)
                with dc.options(eager_below=limit, jit="eager"):
                    found = _stepped(dc.asarray(values[:n].copy()), k, elements)
                assert found[0] == expected[0]
                assert np.array_equal(found[1], expected[1])
        if n > 1:
            expected = _between(values.copy().reshape(n, 3)[:, 1])
            with dc.options(eager_below=limit, jit="eager"):
                found = _between(dc.asarray(values.copy()).reshape(n, 3)[:, 1], elements)
            assert found[0] == expected[0]
            assert np.array_equal(found[1], expected[1])
        with dc.options(eager_below=limit, jit="eager"):
            through = elements(dc.asarray(values) + 1)
            assert list(through) == list(values + 1)
            assert list(through) == []
            assert [type(v) for v in elements(dc.asarray(values[:1] > 0))] == [np.bool] * (n > 0)


def test_elements_of_blocks_are_read_when_they_are_asked_for():
    values = np.linspace(1.0, 2.0, 40)

    def job():
        with dc.options(distribute_above=0, eager_below=0, jit="eager"):
            return _stepped(dc.asarray(values.copy()), 3), _between(dc.asarray(values.copy()))

    for found in dc.comm.run(3, job):
        for (seen, left), (wanted, kept) in zip(
            found, (_stepped(values.copy(), 3), _between(values.copy())), strict=True
        ):
            assert seen == wanted
            assert np.array_equal(left, kept)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_times_an_array_is_the_matrix_product(way):
    a = np.arange(9.0).reshape(3, 3)
    m, x = np.matrix(a), dc.asarray(a)
    for got, wanted in ((m * x, m * a), (x * m, a * m), (m + x, m + a)):
        assert type(got) is np.matrix and got.tolist() == wanted.tolist()
    m *= x
    assert m.tolist() == (a @ a).tolist()


def test_read_only_arrays_stay_so_when_they_are_resized(way):
    x = dc.asarray(np.arange(6.0))
    x.flags.writeable = False
    x.resize(3)
    assert not x.flags.writeable


@pytest.mark.parametrize("kind", ["c16", "c8", "f8", "f4", "f2", "i8"])
@pytest.mark.parametrize("exponent", [-1, -1.0, 0.5, 1, 1.0, 2, 2.0, 0, 3.0])
def test_powers_of_scalars_have_the_bits_of_numpy(way, kind, exponent):
    a = np.array(
        [1, -0.0, -1, 3, -2.5, np.inf, complex(-0.0, -0.0), complex(0, -0.0), 1 + 2j, complex(-2, -0.0)]
    )
    a = (a if kind[0] == "c" else a[:4].real if kind == "i8" else a[:6].real).astype(kind)
    with np.errstate(all="ignore"):
        try:
            wanted = a**exponent
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)[:20]):
                dc.asarray(a) ** exponent
            return
        assert np.asarray(dc.asarray(a) ** exponent).tobytes() == wanted.tobytes()
        x = dc.asarray(a.copy())
        if wanted.dtype == a.dtype:
            x **= exponent
            a **= exponent
            assert np.asarray(x).tobytes() == a.tobytes()


@pytest.mark.parametrize("other", [
    np.str_("a"), np.bytes_(b"a"), np.timedelta64(1, "s"), np.array("a"), np.array(["a"] * 4),
    np.zeros(4, "M8[s]"),
])  # fmt: skip
def test_numbers_are_not_equal_to_what_is_none(way, other):
    x = dc.asarray(np.arange(4.0))
    for got, value in ((x == other, False), (x != other, True), (other == x, False), (other != x, True)):
        assert got.dtype == bool and got.tolist() == [value] * 4
    assert type(x == other) is type(x != other) is dc.ndarray
    with pytest.raises(TypeError):
        x < other  # noqa: B015


def test_classes_in_operators_are_refused_as_by_numpy(way):
    x = dc.asarray(np.arange(3.0))
    with pytest.raises(TypeError, match="unsupported operand"):
        x + np.float64


def test_a_vector_is_no_place_for_a_product(way):
    x = dc.asarray(np.arange(3.0))
    for other in (x, x.copy(), np.ones(3)):
        with pytest.raises(ValueError, match="at least two dimensions"):
            x @= other
    assert x.tolist() == [0, 1, 2]
    x @= np.eye(3)
    assert x.tolist() == [0, 1, 2]


class Measured(np.ndarray):
    """As libraries of units have it: ufuncs of its own, whose results are its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        inputs = [x.view(np.ndarray) if isinstance(x, Measured) else x for x in inputs]
        if out is not None:
            options["out"] = tuple(x.view(np.ndarray) if isinstance(x, Measured) else x for x in out)
        return "measured", getattr(ufunc, method)(*inputs, **options)


def test_subclasses_with_their_own_ufuncs_answer_in_place_too(way):
    q = np.ones(4).view(Measured)
    x = y = dc.asarray(np.arange(4.0))
    y += q
    assert y[0] == "measured" and x.tolist() == [1, 2, 3, 4]
    assert np.add(x, 1, out=q)[0] == "measured" and q.tolist() == [2, 3, 4, 5]
    assert np.add(x, q, out=x)[0] == "measured" and x.tolist() == [3, 5, 7, 9]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_small_numbers_are_true(name: str) -> None:
    """Also where the other operand's dtype has none so small."""
    f = getattr(np, name)
    for below, n in ((0, 2), (16384, 2), (16384, 5000), (16384, 20000)):
        with dc.options(eager_below=below, jit="off"):
            for dtype in ("e", "f", "F", "d"):
                a = np.zeros(n, dtype)
                a[1::2] = 1
                for value in (1.0, 1e-50, -1e-46, 5e-324, 0.0, 1, 1e-60j):
                    np.testing.assert_array_equal(np.asarray(f(dc.asarray(a), value)), f(a, value))
                    np.testing.assert_array_equal(np.asarray(f(value, dc.asarray(a))), f(value, a))


def test_large_integers_are_none_to_logical_ufuncs_in_loops() -> None:
    def chosen(x, o):
        for i in range(len(x)):
            o[i] = np.logical_and(x[i], 2**63)

    with dc.options(jit="eager"), pytest.raises(OverflowError):
        dc.accelerate(chosen)(np.ones((40, 50)), np.zeros((40, 50), bool))


def test_methods_of_large_arrays_take_what_numpys_take() -> None:
    a = np.random.default_rng(2).integers(0, 5, 30_000)
    choices = [np.arange(30_000) * k for k in range(5)]
    x = dc.asarray(a)
    with pytest.raises(ValueError):
        x.astype(float, copy=np._CopyMode.NEVER)
    assert np.array_equal(x.choose(*map(dc.asarray, choices)), a.choose(*choices))
    assert np.array_equal(x.choose(choices), a.choose(choices))
    columns = dc.asarray(np.asfortranarray(a.reshape(100, 300)))
    assert np.round(columns).flags.f_contiguous
    assert not np.shares_memory(np.asarray(np.round(columns)), np.asarray(columns))


def test_dtypes_with_fields_or_without_width() -> None:
    parts = np.dtype(("i4", [("low", "<i2"), ("high", "<i2")]))
    assert dc.zeros(30_000, dtype=parts).dtype == parts == dc.zeros(3, dtype=parts).dtype
    assert dc.zeros(30_000, dtype=parts).dtype.fields
    assert dc.ndarray(4, dtype="S0").itemsize == 0
