"""The public namespace is NumPy's."""

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from fresh import python

import dcarray as dc

CREATION = ("array", "asarray", "asanyarray", "empty", "zeros", "ones", "full")
STANDARD = ("argsort", "clip", "sort")  # which take what the array API standard adds, too
PUBLIC = [name for name in dir(np) if not name.startswith("_")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "info"])  # ours is another
def test_every_public_name_is_there(name):
    original = getattr(np, name)
    ours = getattr(dc, name)
    if callable(original) and not isinstance(original, type):
        assert callable(ours)
        try:
            signature = inspect.signature(original)
        except (TypeError, ValueError):
            return
        if name not in (*CREATION, *STANDARD):
            assert list(inspect.signature(ours).parameters) == list(signature.parameters)


def test_dir_lists_them():
    assert set(PUBLIC) <= set(dir(dc))


def test_results_are_wrapped():
    made = [
        dc.arange(3), dc.linspace(0, 1, 4), dc.eye(2), dc.identity(2), dc.tri(2), dc.sort([2, 1]),
        dc.sum([[1]], 0),
        dc.add([1], [2]), dc.add.outer([1], [2]), dc.add.accumulate([1, 2]), dc.concatenate([[1], [2]]),
        dc.linalg.inv([[2.0]]), dc.fft.fft([1.0]), dc.r_[1:3, 5],
        dc.c_[[1], [2]], dc.mgrid[:2], dc.indices((2,)),
        dc.fromfunction(lambda i: i, (3,)), dc.hanning(4), dc.vectorize(lambda x: x + 1)([1, 2]),
        dc.frombuffer(b"abcd", dtype=np.uint8), dc.logspace(0, 1, 3),
        dc.tril_indices(2)[0], dc.nonzero([1])[0],
        dc.strings.upper(["a"]), dc.emath.sqrt([-1.0]), dc.asarray_chkfinite([1.0]), dc.meshgrid([1], [2])[0],
        dc.fromiter([1, 2], int), dc.broadcast_arrays([1], [2])[0], dc.linalg.svd(np.eye(2)).U,
    ]  # fmt: skip
    for value in made:
        assert type(value) is dc.ndarray
    assert type(dc.sum([1.5])) is np.float64
    assert dc.pi is np.pi and dc.float32 is np.float32 and dc.errstate is np.errstate
    assert dc.newaxis is None and dc.testing is np.testing


def test_a_ufunc_passes_for_numpys():
    assert isinstance(dc.add, np.ufunc) and isinstance(dc.add, dc.ufunc)
    assert dc.add == np.add and dc.add.nin == 2 and dc.add.__name__ == "add"
    assert hash(dc.add) == hash(np.add) and pickle.loads(pickle.dumps(dc.add)) == np.add
    a = dc.asarray([1, 2])
    dc.add.at(a, [0, 0], 5)
    assert a.tolist() == [11, 2]


def test_functions_are_pickled_by_name_and_aliases_are_one_object():
    for ours, numpys in ((dc, np), (dc.linalg, np.linalg), (dc.fft, np.fft)):
        called = [
            name
            for name in dir(numpys)
            if name[0] != "_" and name != "test" and callable(getattr(numpys, name))
        ]
        assert len(called) > 15
        same: dict[int, str] = {}
        for name in called:
            function = getattr(ours, name)
            assert pickle.loads(pickle.dumps(function)) is function, name
            alias = same.setdefault(id(getattr(numpys, name)), name)
            assert function is getattr(ours, alias), (name, alias)
    assert pickle.loads(pickle.dumps(dc.pmap)) is dc.pmap


def test_functions_have_numpys_documentation():
    for name in dir(np):
        if name[0] != "_" and callable(getattr(np, name)) and getattr(np, name).__doc__:
            assert getattr(dc, name).__doc__, name
    assert dc.sum.__doc__ == np.sum.__doc__ and dc.zeros.__doc__


def test_unknown_names():
    with pytest.raises(AttributeError, match="no_such"):
        dc.no_such  # noqa: B018
    with pytest.raises(AttributeError):
        dc.linalg.no_such  # noqa: B018


def test_sub_namespaces_import():
    code = (
        "import dcarray.linalg as la, dcarray.random, dcarray.fft; from dcarray.linalg import norm;"
        "import dcarray; assert dcarray.linalg is la; assert norm([3.0, 4.0]) == 5"
    )
    python("-c", code)


REDUCED = [
    (np.logical_or, "?"), (np.logical_and, "?"), (np.bitwise_xor, "i"), (np.maximum, "d"), (np.fmin, "f"),
    (np.minimum, "B"),
    (np.logical_or, "d"), (np.add, "b"), (np.add, "d"), (np.multiply, "f"), (np.maximum, "D"),
]  # fmt: skip


@pytest.mark.parametrize(("ufunc", "char"), REDUCED)
@pytest.mark.parametrize("shape", [(), (3,), (40, 50)])
def test_lists_of_arrays_are_reduced_as_numpy_reduces_them(ufunc: Any, char: str, shape: Any) -> None:
    rng = np.random.default_rng(2)
    some = [(rng.integers(0, 5, shape) - 2 * (char not in "?B")).astype(char) for _ in range(4)]
    if char in "df" and shape:
        some[1][..., 0], some[2][..., 1:] = np.nan, -0.0
    ours = [dc.asarray(a) for a in some]
    for given, plain in (
        (ours, some),
        (tuple(ours[:2]), some[:2]),
        (ours[:1], some[:1]),
        ([ours[0], some[1]], some[:2]),
    ):
        got, want = getattr(dc, ufunc.__name__).reduce(given), ufunc.reduce(plain)
        assert np.asarray(got).dtype == want.dtype and np.asarray(got).tobytes() == np.asarray(want).tobytes()
        got = getattr(dc, ufunc.__name__).reduce(given, axis=0, keepdims=True)
        np.testing.assert_array_equal(got, ufunc.reduce(plain, axis=0, keepdims=True))
    if len(shape) == 2:
        with pytest.raises(ValueError, match="inhomogeneous"):
            getattr(dc, ufunc.__name__).reduce([ours[0], ours[1][:2]])
