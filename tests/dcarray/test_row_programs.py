"""Programs that run row by row, at sizes where compiled kernels cut their loops."""

import numpy as np
import pytest

import dcarray as dc


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x):
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def two_axes(x):
    mean = x.mean(axis=(-2, -1), keepdims=True)
    return (x - mean) / (np.abs(x - mean).max(axis=(-2, -1), keepdims=True) + 1.0)


def differences(x):
    y = np.zeros_like(x)
    y[..., 1:] = x[..., 1:] - x[..., :-1]
    y -= y.min(axis=-1, keepdims=True)
    return y.sum(axis=-1), y


def columns(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


@pytest.mark.parametrize("program", [softmax, layer_norm, two_axes, differences, columns])
@pytest.mark.parametrize("shape", [(70, 200), (3, 25, 90), (40, 3, 129), (17, 1000), (300, 65)])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_rows(program, shape, dtype):
    rng = np.random.default_rng(0)
    with dc.options(jit="eager", eager_below=0):
        for add in (0, 1, 2):  # another size, and then one that is served by the plan for all sizes
            a = rng.normal(size=(*shape[:-1], shape[-1] + add)).astype(dtype)
            want, got = program(a), program(dc.asarray(a))
            pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
            for one, two in pairs:
                np.testing.assert_allclose(
                    np.asarray(two), one, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-5
                )


@pytest.mark.parametrize("program", [softmax, columns, lambda x: x.sum(axis=0), lambda x: x.T.copy()])
def test_the_number_of_threads_changes_nothing(program):
    a = np.random.default_rng(1).normal(size=(700, 900))
    found = []
    for threads in (1, 2, 5):
        with dc.options(jit="eager", threads=threads):
            found.append(np.asarray(program(dc.asarray(a))))
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_nan_and_infinity_in_rows():
    a = np.random.default_rng(1).normal(size=(64, 130))
    a[3, 7], a[5, 0], a[6] = np.nan, np.inf, -np.inf
    with dc.options(jit="eager", eager_below=0), np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(softmax(dc.asarray(a))), softmax(a), rtol=1e-12)
        np.testing.assert_array_equal(np.asarray(dc.asarray(a).max(axis=1)), a.max(axis=1))
        np.testing.assert_array_equal(np.asarray(dc.asarray(a).min(axis=0)), a.min(axis=0))
