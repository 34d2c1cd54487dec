"""The standard's namespace, whose arrays stay arrays, and operands of types that know only NumPy's arrays."""

import copy
import pickle

import numpy as np
import pytest

import dcarray as dc
from dcarray import array_api
from dcarray.array_api.standard_array import StandardArray


@pytest.fixture(params=["small", "large"])
def way(request):
    with dc.options(**({} if request.param == "small" else {"eager_below": 0, "jit": "off"})):
        yield


def is_standard(*values):
    return all(type(v) is StandardArray for v in values)


def test_ordinary_arrays_keep_numpys_scalars(way):
    x = dc.asarray([1.0, 2.0, 3.0])
    for value in (np.sum(x), dc.sum(x), x.sum(), x[0], next(iter(x)), np.sqrt(x[1]), np.vdot(x, x)):
        assert type(value) is np.float64
    assert type(x + 1) is type(dc.sqrt(x)) is dc.ndarray


def test_what_the_namespace_makes_stays_an_array(way):
    x = dc.asarray(np.arange(6.0).reshape(2, 3) + 1)
    s = array_api.sum(x)
    assert is_standard(s) and s.shape == () and s == 21 and isinstance(s, dc.ndarray)
    assert is_standard(s + 1, 1 + s, s * x, x * s, np.ones(3) + s, -s, s > 3, abs(s), *divmod(s, 2))
    assert is_standard(s.sum(), s.reshape(1), s.T, s.real, s.astype(int), s[()], s[None], s.copy())
    assert is_standard(
        np.sqrt(s), np.sum(s), dc.exp(s), np.concatenate([s[None], x[0]]), np.add.reduce(x * s)
    )
    assert is_standard(
        array_api.asarray(x), array_api.ones(2)[0], *array_api.ones(2), array_api.linalg.norm(x)
    )
    assert is_standard(*array_api.unique_counts(x), *array_api.linalg.svd(x), array_api.fft.fft(x)[0, 0])
    assert is_standard(copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)))
    assert (float(s), int(s), bool(s), s.item(), f"{s:.1f}", str(s)) == (21, 21, True, 21, "21.0", "21.0")
    assert array_api.float64 is np.float64 and array_api.pi == np.pi and array_api.linalg.__name__


def test_memory_is_shared_and_arguments_come_back_as_themselves(way):
    x = array_api.zeros(4)
    y = x[1:3]
    y += array_api.asarray(2.0)
    x[array_api.asarray([True, False, False, False])] = array_api.asarray(7.0)
    assert x.tolist() == [7, 2, 2, 0] and is_standard(x, y)
    same = x
    same *= 2
    assert same is x and np.add(x, 1, out=x) is x and x.astype(float, copy=False) is x
    ordinary = dc.asarray(x)
    assert type(ordinary) is dc.ndarray
    ordinary[0] = -1
    assert x[0] == -1 and dc.evaluate(x) is x


def test_as_indices_and_values_of_ordinary_arrays(way):
    x = dc.asarray(np.arange(6.0).reshape(2, 3))
    assert x[array_api.asarray(1)].tolist() == [3, 4, 5]
    assert x[array_api.asarray([1, 0]), array_api.asarray(2)].tolist() == [5, 2]
    x[array_api.asarray([False, True])] = array_api.asarray([9.0, 8.0, 7.0])
    x += array_api.asarray(1)
    assert type(x) is dc.ndarray and x.tolist() == [[1, 2, 3], [10, 9, 8]]
    empty = dc.asarray(np.zeros((0, 3)))
    assert empty[array_api.zeros((0, 3), dtype=bool)].shape == (0,)


def test_pending_values_are_seen(way):
    x = array_api.asarray(dc.asarray(np.arange(40_000.0)))
    part = x[::2]
    part *= -1
    total = array_api.sum(x)
    x[0] = 5
    assert total == np.sum(np.arange(1, 40_000, 2)) - np.sum(np.arange(0, 40_000, 2)) and x[2] == -2


def test_distinct_elements_come_in_order():
    values = np.array([5, -3, 5, 0, 2, -3, 9, 1])
    assert array_api.unique_values(dc.asarray(values)).tolist() == sorted(set(values.tolist()))


class _Measured:
    """Takes ufuncs on plain arrays, as a library does that does not know ours."""

    def __init__(self, values, unit):
        self.values, self.unit = values, unit

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(
            hasattr(type(x), "__array_ufunc__") and type(x) not in (_Measured, np.ndarray) for x in inputs
        ):
            return NotImplemented
        inputs = [x.values if isinstance(x, _Measured) else x for x in inputs]
        return _Measured(getattr(ufunc, method)(*inputs, **kwargs), self.unit)


def test_types_that_know_only_numpys_arrays_get_them(way):
    x, metres = dc.asarray(np.arange(4.0)), _Measured(np.ones(4), "m")
    y = x * 2  # pending
    for result in (np.maximum(y, metres), np.maximum(metres, y), y + metres):
        assert result.unit == "m" and type(result.values) is np.ndarray
    assert np.maximum(metres, y).values.tolist() == [1, 2, 4, 6]


def test_views_given_to_strangers_see_later_writes(way):
    class Keeper:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            if type(inputs[0]) is not np.ndarray:
                return NotImplemented
            return inputs[0]

    x = dc.asarray(np.zeros(50_000))
    kept = np.add(x, Keeper())
    x += 1
    assert type(kept) is np.ndarray and kept[7] == 1


def test_operands_that_nobody_takes_raise():
    class Refusing:
        def __array_ufunc__(self, *args, **kwargs):
            return NotImplemented

    with pytest.raises(TypeError):
        np.add(dc.asarray([1.0]), Refusing())
