"""Functions of extension modules in accelerated code: plain arrays for them, wrapped ones for results."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import shutil
import subprocess
import sys
import sysconfig
import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.jit.library_stand_ins import ExtensionFunction, is_extension, library_stand_in

SIZES = pytest.mark.parametrize("n", [7, 30_000])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A module in C."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    paths = sysconfig.get_paths()
    if not Path(paths["include"], "Python.h").exists():
        pytest.skip("needs the headers of Python")
    source = Path(__file__).with_name("compiled_functions.c")
    name = "compiled_functions"
    library = tmp_path_factory.mktemp("compiled") / (name + str(sysconfig.get_config_var("EXT_SUFFIX")))
    flags = ["-shared", "-fPIC", "-O1", f"-I{paths['include']}", f"-I{np.get_include()}"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


@pytest.fixture
def library(compiled: Any) -> Callable[[str], Any]:
    """Makes an accelerated module of a text, in which ``c`` is the module in C."""
    held = []

    def make(text: str) -> Any:
        module = types.ModuleType("calling")
        vars(module).update(c=compiled, np=np, total=compiled.total)
        exec(text, vars(module))
        held.append(dc.accelerate(module))
        return module

    yield make  # type: ignore[misc]
    for one in held:
        one.undo()


# ---- arguments ---------------------------------------------------------------------------------------
@SIZES
def test_a_function_is_given_what_is_pending(n: int, compiled: Any, library: Any) -> None:
    x = dc.asarray(np.arange(float(n))) * 2
    with pytest.raises(TypeError, match="expected numpy"):
        compiled.total(x)
    module = library("def run(x): return total(x + 1), c.total(x[1:]), c.total(np.ones(3))")
    whole = np.arange(float(n)) * 2
    assert module.run(x) == (float(sum(whole + 1)), float(sum(whole[1:])), 3.0)
    assert module.run(whole) == (float(sum(whole + 1)), float(sum(whole[1:])), 3.0)


@SIZES
def test_what_it_writes_is_seen_and_what_waited_is_not_changed(n: int, library: Any) -> None:
    module = library("def run(x):\n    y = x + 1\n    z = c.fill(x, value=5.0)\n    return y, z, z * 2")
    x = dc.asarray(np.zeros(n)) + 3
    view = x[2:4]
    y, z, twice = module.run(x)
    assert z is x
    assert np.all(np.asarray(y) == 4) and np.all(np.asarray(x) == 5) and np.all(np.asarray(view) == 5)
    assert np.all(np.asarray(twice) == 10)


@SIZES
def test_an_argument_that_is_kept_stays_right(n: int, compiled: Any, library: Any) -> None:
    module = library(
        "def run(x):\n    c.keep(x)\n    x += 1\n    x *= 2\n    found = c.total_of_kept()\n"
        "    c.add_to_kept(10.0)\n    x[0] = x[1]\n    return found, x, x - 1"
    )
    for _ in range(5):  # also with plans
        found, x, less = module.run(dc.asarray(np.zeros(n)) + 1)
        assert found == 4.0 * n == compiled.total_of_kept() - 10 * n
        compiled.add_to_kept(1.0)
        assert np.all(np.asarray(less) == 13) and np.all(np.asarray(x) == 15)
        x += 1
        assert compiled.total_of_kept() == 16 * n
        dc.wait()


@SIZES
def test_arguments_in_lists_tuples_and_dictionaries(n: int, library: Any) -> None:
    pair = namedtuple("pair", "a b")
    module = library("def run(values): return c.replace(values)")
    x, other = dc.asarray(np.ones(n)) + 1, object()
    values = [x, other]
    assert module.run(values) is x and values[1] is other
    assert type(values[0]) is np.ndarray and np.all(np.asarray(values[0]) == 0)
    named = {"x": x, "y": pair(x, (x, 1))}
    assert module.run(named) is x and named["y"].b[0] is x
    assert type(named["x"]) is np.ndarray and list(named) == ["x", "y"]


def test_a_selection_by_a_mask(library: Any) -> None:
    module = library("def run(x): return total(x[x > 2.0])")
    assert module.run(dc.asarray(np.arange(30_000.0))) == float(sum(range(3, 30_000)))


LINES = (
    "x += y", "y = x * 2 - y", "x[::2] *= -1", "z = x[5:20]", "z -= 1", "x = y[::-1] + 1",
    "c.fill(z.copy(), value=9.0)", "c.fill(x, value=2.5)", "z = c.fill(y)[30:]", "y = c.replace([y, x]) + 1",
    "c.keep(x)", "c.keep(y[10:40])", "c.add_to_kept(0.5)", "found.append(c.total_of_kept())",
    "found.append(total(y + x))", "x, _ = c.zeros(50)", "y[:25] += x[25:]",
)  # fmt: skip


@pytest.mark.parametrize("jit", ["off", "eager"])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int, jit: str, compiled: Any, library: Any) -> None:
    """Whatever a function keeps, reads and writes, and whenever: NumPy's values."""
    chosen = np.random.default_rng(seed).choice(LINES, 40 if jit == "off" else 12)
    text = "def run(x, y):\n    found, z = [], x[3:]\n    c.keep(x)\n" + "".join(
        f"    {line}\n" for line in chosen
    )
    text += "    return found, np.asarray(x) + 0, y + 0, z + 0, c.total_of_kept()\n"
    plain = {"c": compiled, "np": np, "total": compiled.total}
    exec(text, plain)
    start = np.linspace(0, 1, 50), np.linspace(3, 2, 50)
    wanted: Any = plain["run"](*(a.copy() for a in start))  # type: ignore[operator]
    module = library(text)
    with dc.options(eager_below=0, jit=jit):
        found = module.run(*(dc.asarray(a.copy()) for a in start))
        for one, other in zip(found, wanted, strict=True):
            assert np.allclose(one, other, rtol=1e-12), text


# ---- results -----------------------------------------------------------------------------------------
def test_new_arrays_are_wrapped_and_others_are_not(compiled: Any, library: Any) -> None:
    module = library("def new(n): return c.zeros(n)\ndef known(): return c.table()")
    made, n = module.new(30_000)
    assert type(made) is dc.ndarray and n == 30_000
    made += 1
    assert compiled.total(np.asarray(made)) == 30_000
    table = module.known()
    assert type(table) is np.ndarray  # somebody else has it, too
    table += 1
    assert compiled.total_of_table() == 30_000


def test_a_function_that_is_accelerated_returns_plain_arrays(compiled: Any) -> None:
    total, fill = compiled.total, compiled.fill
    names = {"total": total, "fill": fill, "np": np, "__name__": "functions"}
    exec("def run(x):\n    y = np.ones_like(x) + x\n    fill(x, total(y))\n    return x * 1, y", names)
    plain = np.zeros(30_000)
    for _ in range(3):
        plain[:] = 0
        product, y = dc.accelerate(names["run"])(plain)
        assert type(product) is type(y) is np.ndarray
        assert np.all(plain == 30_000) and np.all(product == plain) and np.all(y == 1)
    assert names["total"] is total


# ---- classes -----------------------------------------------------------------------------------------
@SIZES
@pytest.mark.parametrize("name", ["Sums", "OpenSums"])
def test_classes_are_given_plain_arrays(name: str, n: int, compiled: Any, library: Any) -> None:
    kind = getattr(compiled, name)
    with pytest.raises(TypeError, match="expected numpy"):
        kind(dc.asarray(np.ones(n)))
    module = library(
        f"def run(x):\n    made = c.{name}(x + 1)\n    assert isinstance(made, c.{name})\n"
        f"    assert type(made) == c.{name}\n"
        "    return made, made.plus(x)\n"
        f"def kept(x):\n    made = c.{name}(x)\n    x += 1\n    x *= 3\n    return made.plus(x)\n"
        "def hidden(x): return c.hidden(x)"
    )
    made, total = module.run(dc.asarray(np.ones(n)) * 2)
    assert type(made) is kind and total == 5 * n
    assert module.kept(dc.asarray(np.ones(n)) * 2) == 18 * n
    assert module.hidden(dc.asarray(np.ones(n)) * 2).plus(dc.asarray(np.ones(n)) + 3) == 6 * n
    assert made.plus(np.ones(n)) == 4 * n and kind.plus.__doc__ == "The sum of both."
    found = library_stand_in(kind)
    assert found == kind and kind == found and hash(found) == hash(kind) and repr(found) == repr(kind)
    assert (
        issubclass(found, kind) == (name == "OpenSums") and issubclass(kind, found) and found.__name__ == name
    )
    assert found is library_stand_in(kind) is library_stand_in(found)
    if name == "OpenSums":

        class Mine(found):  # type: ignore[misc, valid-type]
            """Derives from the class itself."""

        assert Mine.__mro__[1] is kind and isinstance(Mine(np.ones(n)), found)
    else:
        with pytest.raises(TypeError):
            type("Mine", (found,), {})


# ---- the stand-ins -----------------------------------------------------------------------------------
def test_a_stand_in_is_like_its_function(compiled: Any, library: Any) -> None:
    found = library_stand_in(compiled.total)
    assert found is library_stand_in(found) is library_stand_in(compiled.total)
    assert found == compiled.total and compiled.total == found and hash(found) == hash(compiled.total)
    assert found != compiled.fill and {compiled.total: 1}[found] == 1
    assert isinstance(found, types.BuiltinFunctionType) and callable(found)
    assert found.__name__ == "total" and found.__doc__ == "The sum of all elements."
    assert found.__module__ == "compiled_functions" and repr(found) == repr(compiled.total)
    assert copy.copy(found) == found and pickle.loads(pickle.dumps(found)) == compiled.total
    module = library("class Sum:\n    of = total\ndef run(x): return Sum.of(x), Sum().of(x)")
    vars(module)["Sum"].of = library_stand_in(compiled.total)
    assert module.run(dc.asarray(np.ones(3))) == (3.0, 3.0)


def test_a_module_shows_its_functions(compiled: Any) -> None:
    module = library_stand_in(compiled)
    assert module is library_stand_in(compiled) and isinstance(module, types.ModuleType)
    assert type(module.total) is ExtensionFunction and module.total == compiled.total
    assert module.__name__ == "compiled_functions" and dir(module) == dir(compiled)
    assert vars(module) is vars(compiled) and repr(module) == repr(compiled)
    module.more = 3
    assert compiled.more == 3
    del module.more
    assert not hasattr(compiled, "more")
    with pytest.raises(AttributeError, match="nonsense"):
        module.nonsense  # noqa: B018


def test_only_installed_compiled_code_has_stand_ins(compiled: Any) -> None:
    import math

    for value in (np, np.sum, math, math.sqrt, len, dc.zeros, dc, 3, int, None, pytest, pytest.raises, Path):
        assert library_stand_in(value) is value
    assert is_extension("compiled_functions") and not is_extension("no.such") and not is_extension(None)
    assert not is_extension("numpy._core._multiarray_umath") and not is_extension("pytest")


def test_a_compiled_module_is_not_accelerated_itself(compiled: Any) -> None:
    with pytest.raises(ValueError, match="compiled code"):
        dc.accelerate(compiled)
    module = types.ModuleType("calling")
    module.c = compiled  # type: ignore[attr-defined]
    with dc.accelerate(module):  # it has no NumPy, but it calls compiled code
        assert type(module.c) is not types.ModuleType
    assert module.c is compiled


# ---- functions of real libraries ---------------------------------------------------------------------
def test_functions_of_scipy() -> None:
    """Of Cython, with fused types; of Pythran; of f2py, which writes to an argument."""
    flapack = pytest.importorskip("scipy.linalg._flapack")
    upfirdn = pytest.importorskip("scipy.signal._upfirdn_apply")
    module = types.ModuleType("calling")
    vars(module).update(lapack=flapack, dgetrf=flapack.dgetrf, np=np, upfirdn=upfirdn)
    exec(
        "def factors(a): return dgetrf(a, overwrite_a=1)\n"
        "def inverse(a):\n    lu, pivots, info = lapack.dgetrf(a)\n    return lapack.dgetri(lu, pivots)[0]\n"
        "def filtered(x, out):\n    upfirdn._apply(x, np.ones(2), out, 1, 1, 0, 0, 0.0)\n    return out * 2",
        vars(module),
    )
    a = np.asfortranarray(np.random.default_rng(1).random((200, 200)) + np.eye(200) * 9)
    with dc.accelerate(module):
        x = dc.asarray(a, copy=True, order="F")
        lu, _, info = module.factors(x)
        assert info == 0 and np.array_equal(np.asarray(lu), flapack.dgetrf(a)[0])
        assert np.array_equal(np.asarray(x), np.asarray(lu))
        inverse = module.inverse(dc.asarray(a) * 1)
        assert type(inverse) is dc.ndarray and np.allclose(np.asarray(inverse) @ a, np.eye(200))
        found = module.filtered(dc.asarray(np.ones((1, 9000))) * 3, dc.asarray(np.zeros((1, 9001))) + 0)
    assert np.array_equal(found, module.filtered(np.ones((1, 9000)) * 3, np.zeros((1, 9001))))


@pytest.mark.parametrize("n", [8, 200])
def test_functions_that_leave_other_outputs_unfilled(n: int) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    module = types.ModuleType("calling")
    vars(module).update(ndimage=ndimage, erosion=ndimage.binary_erosion, np=np)
    exec(
        "def run(x):\n    y, z = np.empty(x.shape, bool), np.empty(x.shape)\n"
        "    assert ndimage.gaussian_filter(x + 1, 2, output=z) is z\n"
        "    return erosion(x > 0.2, output=y) is None or y, z, ndimage.label(x > 0.5)[0]",
        vars(module),
    )
    plain = np.random.default_rng(2).random((n, n))
    wanted = module.run(plain)
    with dc.accelerate(module):
        found = module.run(dc.asarray(plain) * 1)
        assert all(type(one) is dc.ndarray for one in found)
    assert all(map(np.array_equal, found, wanted))
