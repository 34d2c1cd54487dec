"""Libraries for C call the C library's functions, and what programs have in place of NumPy's."""

from types import ModuleType

import numpy as np
import pytest
from program_runs import loaded

from dcarray.jit.program.compile_command import compile_library

TEXT = """
import math
import numpy as np
import dcarray as dc

N, M = dc.symbol("N"), dc.symbol("M")

def functions(a: float, b: float, x: dc.types.float64[N]):
    for i in range(len(x)):
        x[i] = a**b + math.exp(a) * math.erf(x[i]) + math.atan2(a, b) + math.log(a)
    return math.pow(a, b)

def histogram(x: dc.types.float64[N], bins: int):
    return np.histogram(x, bins)

def solved(a: dc.types.float64[N, N], b: dc.types.float64[N, M]):
    return np.linalg.solve(a, b)

def in_place(rows: int, size: int, a: dc.types.float64[N, M], c: dc.types.float64[M, M]):
    a[:] = np.reshape(np.reshape(a, (rows, 1, size)) @ c, (rows, size))

def halves(x: dc.types.float64[N, M]):
    n, m = x.shape
    return np.reshape(x[::2], (-(-n // 2) * m,)) * 2.0, np.linspace(0.0, x[0, 0], m)
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, ModuleType]:
    """The loader of a library, and the functions as they are written."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "source.py").write_text(TEXT)
    source = loaded(folder / "source.py")
    names = ("functions", "histogram", "solved", "in_place", "halves")
    made = compile_library([getattr(source, name) for name in names], folder, "made")
    return loaded(made[2]), source


def test_functions_of_c(modules: tuple[ModuleType, ModuleType]) -> None:
    library, source = modules
    x = np.linspace(-2.0, 2.0, 9)
    y = x.copy()
    assert library.functions(1.5, 2.5, x) == source.functions(1.5, 2.5, y) and np.array_equal(x, y)
    for a, b in ((-1.0, 0.5), (0.0, -1.0), (1e300, 2.0)):  # of which Python raises errors, or makes a complex
        with pytest.raises(ValueError, match="FAILED_CHECK"):
            library.functions(a, b, x)


def test_functions_of_numpy(modules: tuple[ModuleType, ModuleType]) -> None:
    library, source = modules
    r = np.random.default_rng(0)
    x = r.random(1000)
    for found, expected in zip(library.histogram(x, 20), source.histogram(x, 20), strict=True):
        assert found.dtype == expected.dtype and np.array_equal(found, expected)
    a, b = r.random((9, 9)), r.random((9, 4))
    np.testing.assert_allclose(library.solved(a, b), source.solved(a, b), rtol=1e-9)
    with pytest.raises(ValueError, match="FAILED_CHECK"):
        library.solved(np.zeros((9, 9)), b)


def test_shapes(modules: tuple[ModuleType, ModuleType]) -> None:
    library, source = modules
    r = np.random.default_rng(0)
    for n, m in ((4, 6), (5, 7), (1, 2), (33, 40)):
        a, c = r.random((n, m)), r.random((m, m))
        b = a.copy()
        library.in_place(n, m, a, c)
        source.in_place(n, m, b, c)
        np.testing.assert_allclose(a, b, rtol=1e-12)
        for found, expected in zip(library.halves(a), source.halves(a), strict=True):
            assert np.array_equal(found, expected)
    with pytest.raises(ValueError, match="GUARD"):
        library.in_place(5, 7, r.random((5, 6)), r.random((6, 6)))
