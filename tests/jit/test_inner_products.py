"""Loops over elements with inner products of rows and columns, for overlapping and strided arrays."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from written import written

import dcarray as dc
from dcarray.core.counters import settle

PROGRAMS = {
    "below": """
        for i in range(B.shape[0]):
            for j in range(B.shape[1]):
                B[i, j] += np.dot(A[i + 1:, i], B[i + 1:, j])
    """,
    "above": """
        for i in range(B.shape[0]):
            for j in range(B.shape[1]):
                B[i, j] -= A[i, :i] @ B[:i, j]
    """,
    "itself": """
        for i in range(B.shape[0]):
            for j in range(B.shape[1]):
                B[i, j] = A[i, :] @ B[:, j]
    """,
    "along": """
        for i in range(B.shape[0]):
            for j in range(B.shape[1]):
                B[i, j] -= B[i, :j] @ A[:j, j]
    """,
    "both": """
        for i in range(A.shape[0]):
            for j in range(i):
                A[i, j] -= A[i, :j] @ A[:j, j]
                A[i, j] *= B[j, j]
            for j in range(i, A.shape[0]):
                A[i, j] -= A[i, :i] @ A[:i, j]
    """,
    "rows": """
        for i in range(1, A.shape[0]):
            for j in range(i):
                A[i, j] -= np.dot(A[i, :j], B[j, :j])
            A[i, i] -= np.dot(A[i, :i], A[i, :i])
    """,
    "shorter": """
        for i in range(A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] += A[i, :j - 1] @ B[1:j, j] - A[i, j - 1]
    """,
    "later": """
        for i in range(A.shape[0]):
            for j in range(2, i):
                A[i, j] -= A[i, :j] @ A[:j, j]
                A[i, j - 1] += 1
    """,
    "shifted": """
        for i in range(A.shape[0] - 1):
            for j in range(i):
                A[i, j] -= A[i, :j] @ A[1:j + 1, j]
                A[i + 1, j] += A[i, j]
    """,
    "downwards": """
        for i in range(A.shape[0] - 1, -1, -1):
            for j in range(A.shape[1] - 1, i, -1):
                A[i, j] -= A[i, i:j] @ B[i:j, j]
    """,
}


def _laid(a: Any, how: str) -> Any:
    """The same elements, lying otherwise."""
    if how == "turned":
        return np.ascontiguousarray(a.T).T
    if how == "backwards":
        return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]
    if how == "apart":
        wide = np.zeros((2 * a.shape[0], 3 * a.shape[1]), a.dtype)
        wide[::2, ::3] = a
        return wide[::2, ::3]
    return a.copy()


def _arrays(n: int, dtype: str, how: tuple[str, str], shared: int, seed: int) -> tuple[Any, Any]:
    """Two square arrays of whole numbers that get no larger than can be added in any order."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-1, 2, (2, n, n)) * (rng.random((2, n, n)) < min(0.6, 3 / (n + 1)))
    values = values.astype(dtype)
    if dtype == "D":
        values = values * (1 + 1j)
    if shared >= 0:  # the second begins so many elements after the first, in one memory
        memory = np.zeros(2 * n * n + n, dtype)
        memory[: 2 * n * n] = values.ravel()
        first = memory[: n * n].reshape(n, n)
        return first, memory[shared : shared + n * n].reshape(n, n)
    return _laid(values[0], how[0]), _laid(values[1], how[1])


def _ran(f: Any, arrays: tuple[Any, Any]) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(*arrays)
    return [a.tobytes() for a in arrays], sorted({str(w.message) for w in caught})


def _program(name: str) -> Any:
    return written("import numpy as np\ndef f(A, B):\n" + PROGRAMS[name].replace("\n        ", "\n    ")[1:])


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_results_are_numpys(name: str, data: st.DataObject) -> None:
    n = data.draw(st.sampled_from([0, 1, 2, 5, 9, 13, 37]))
    ways = st.sampled_from(["whole", "turned", "backwards", "apart"])
    dtype = data.draw(st.sampled_from("ddfDl"))
    shared = data.draw(st.sampled_from([-1, -1, 0, 1, n, n * n // 2]))
    given_ = n, dtype, (data.draw(ways), data.draw(ways)), shared, data.draw(st.integers(0, 99))
    f = _program(name)
    with dc.options(jit="off"):
        wanted = _ran(f, _arrays(*given_))
        with np.errstate(all="ignore"):
            f(*(arrays := _arrays(*given_)))
    assume(all(np.all(np.abs(a) < 2.0**50) for a in arrays))  # else sums depend on their order
    with dc.options(jit="eager", cache_dir=None):
        ours, before = dc.accelerate(f), settle().loops
        for _ in range(2):
            assert _ran(ours, _arrays(*given_)) == wanted
    assert settle().loops - before == 2 or shared >= 0 or n < 2


@pytest.mark.parametrize("suffix", ["block", "row", "iteration", "_", "1"])
@pytest.mark.parametrize("outer", [False, True])
def test_variables_may_have_names_like_those_of_blocks(outer: bool, suffix: str) -> None:
    """Loops over blocks of iterations, which passes make, have names of their own."""
    text = PROGRAMS["both"].replace("\n        ", "\n            ")
    if outer:
        text = f"\n        for i_{suffix} in range(2):{text}            A[0, 0] += i_{suffix}"
    else:
        text = re.sub(r"\bj\b", f"i_{suffix}", text).replace("\n            ", "\n        ")
    f = written("import numpy as np\ndef f(A, B):\n" + text.replace("\n        ", "\n    ")[1:])
    with dc.options(jit="off"):
        wanted = _ran(f, _arrays(37, "d", ("whole", "whole"), -1, 7))
    with dc.options(jit="eager", cache_dir=None):
        ours, before = dc.accelerate(f), settle().loops
        assert _ran(ours, _arrays(37, "d", ("whole", "whole"), -1, 7)) == wanted
    assert settle().loops - before == 1


@pytest.mark.parametrize("name", ["below", "both", "along"])
@pytest.mark.parametrize("values", [(np.inf,), (np.nan,), (np.inf, -np.inf), (1e200, -1e200)])
def test_infinities_and_their_warnings(name: str, values: tuple[float, ...]) -> None:
    f = _program(name)

    def arrays() -> tuple[Any, Any]:
        a, b = _arrays(37, "d", ("whole", "whole"), -1, 5)
        for value, at in zip(values, [(20, 7), (30, 9)], strict=False):
            a[at] = b[at[::-1]] = value
        return a, b

    def outcome(f: Any) -> Any:
        given_ = arrays()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(*given_)
        return given_, sorted({str(w.message).split(" encountered")[0] for w in caught})

    with dc.options(jit="off"):
        wanted, said = outcome(f)
    with dc.options(jit="eager", cache_dir=None):
        ours = dc.accelerate(f)
        for _ in range(2):
            got, told = outcome(ours)
            assert told == said
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(one, other)
