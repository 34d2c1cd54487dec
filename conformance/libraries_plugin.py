"""The pytest plugin behind `conformance.libraries`: dcarray as one more backend of a library's own tests.

``--backend-for LIBRARY`` names the library.  Nothing of it is edited: where its tests are parametrised with
backends, the parameters become our namespace; where they make arrays of one fixed library, its name answers
with ours.  Only the tests that get arrays of ours are kept.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dcarray as dc

__all__ = ["LIBRARIES"]

STANDARD: Any = dc.empty(0).__array_namespace__()
NAME: str = STANDARD.__name__


def _parametrised(metafunc: pytest.Metafunc, fixture: str, value: Any, *marks: Any) -> None:
    """Let a fixture of the library's have one parameter, ours, in place of its own."""
    if fixture in metafunc.fixturenames:
        parameter = pytest.param(value, id="dcarray", marks=marks)
        mark = pytest.mark.parametrize(fixture, [parameter], indirect=True)
        metafunc.definition.add_marker(mark)


def _has_ours(item: Any) -> bool:
    """Is one of the test's parameters our namespace?"""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(isinstance(value, str) and value in (NAME, "dcarray") for value in parameters)


class _Library:
    """How a library's tests take one more backend; this one has it by the name of its module."""

    def generate(self, metafunc: pytest.Metafunc) -> None:
        """Called before the parameters of a test are read."""

    def chosen(self, item: Any) -> bool:
        """Does the test use our arrays?"""
        return _has_ours(item)


class _Scipy(_Library):
    """The fixture ``xp``; markers know the backends by the names of their modules."""

    def __init__(self) -> None:
        importlib.import_module("scipy.conftest").xp_known_backends.add(NAME)

    def generate(self, metafunc: pytest.Metafunc) -> None:
        _parametrised(metafunc, "xp", STANDARD, pytest.mark.array_api_backends)

    def chosen(self, item: Any) -> bool:
        return "xp" in item.fixturenames


class _UsualScipy(_Library):
    """SciPy as most people use it, without ``SCIPY_ARRAY_API``: our namespace answers to the name of NumPy's.

    What comes back may be plain, since SciPy then asks nobody for a namespace; the tests' assertions about
    namespaces are left out.
    """

    def __init__(self) -> None:
        self.numpy = ModuleType("numpy")
        names = {name: vars(np)[name] for name in ("__version__", "__array_namespace_info__")}
        vars(self.numpy).update(names, __getattr__=dc.__getattr__)
        scipy: Any = importlib.import_module("scipy.conftest")
        scipy.array_namespace = lambda x: self.numpy
        testing: Any = importlib.import_module("scipy._lib._array_api")
        testing._assert_matching_namespace = lambda *args, **kwargs: None

    def generate(self, metafunc: pytest.Metafunc) -> None:
        _parametrised(metafunc, "xp", self.numpy, pytest.mark.array_api_backends)

    def chosen(self, item: Any) -> bool:
        return "xp" in item.fixturenames


class _AcceleratedScipy(_UsualScipy):
    """The usual SciPy, in those of whose modules an argument is asked whether it is an `numpy.ndarray`."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("_interpolation", "_morphology"):
            dc.accelerate(importlib.import_module(f"scipy.ndimage.{name}"))


class _Sklearn(_Library):
    """Parameters are made by functions that name the namespaces."""

    def __init__(self) -> None:
        module: Any = importlib.import_module("sklearn.utils._array_api")
        module.yield_namespaces = lambda include_numpy_namespaces=True: iter([NAME])


class _Compat(_Library):
    """Lists of names that the test modules share."""

    def __init__(self) -> None:
        importlib.import_module("array_api_compat.tests._helpers").all_libraries[:] = [NAME]


class _Backend:
    """What array-api-extra has in an enumeration: the name of a backend's module."""

    name = modname = value = NAME

    def like(self, *others: Any) -> bool:
        """Is this one of these backends?"""
        return any(self.modname == other.modname for other in others)


class _Extra(_Library):
    """The fixture ``library``, from which ``xp`` follows."""

    def __init__(self) -> None:
        self.backend = _Backend()

    def generate(self, metafunc: pytest.Metafunc) -> None:
        _parametrised(metafunc, "library", self.backend)

    def chosen(self, item: Any) -> bool:
        return "library" in item.fixturenames


class _Xarray(_Library):
    """A table of namespaces in one module; another one imports array-api-strict for its arrays."""

    def __init__(self) -> None:
        strict, inner = ModuleType("array_api_strict"), ModuleType("array_api_strict._array_object")
        strict.__getattr__ = STANDARD.__getattr__  # type: ignore[method-assign]
        inner.Array = dc.ndarray  # type: ignore[attr-defined]
        sys.modules |= {strict.__name__: strict, inner.__name__: inner}

    def generate(self, metafunc: pytest.Metafunc) -> None:
        table = getattr(metafunc.module, "NAMESPACE_ARRAYS", None)
        if table is not None:
            table["dcarray"] = {"attrs": {"array": "ndarray", "constructor": "asarray"}, "xfails": {}}
            metafunc.module.NAMESPACES[:] = ["dcarray"]

    def chosen(self, item: Any) -> bool:
        return _has_ours(item) or item.module.__name__.endswith("test_array_api")


class _OptEinsum(_Library):
    """The tests make NumPy's arrays: where they say ``np``, that is ours."""

    def __init__(self) -> None:
        testing: Any = importlib.import_module("opt_einsum.testing")
        build: Callable[..., Any] = testing.build_views
        testing.build_views = lambda *args, **kwargs: tuple(map(dc.asarray, build(*args, **kwargs)))

    def chosen(self, item: Any) -> bool:
        if hasattr(item.module, "np"):
            item.module.np = dc
        return True


LIBRARIES: dict[str, type[_Library]] = {
    "scipy": _Scipy,
    "scipy-usual": _UsualScipy,
    "scipy-accelerated": _AcceleratedScipy,
    "scikit-learn": _Sklearn,
    "array-api-compat": _Compat,
    "array-api-extra": _Extra,
    "xarray": _Xarray,
    "opt_einsum": _OptEinsum,
}


class _Plugin:
    def __init__(self, library: _Library) -> None:
        self.library = library

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        self.library.generate(metafunc)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if self.library.chosen(item)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of the plugin."""
    parser.getgroup("libraries").addoption("--backend-for", choices=LIBRARIES, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the library before its test modules are imported."""
    config.pluginmanager.register(_Plugin(LIBRARIES[config.getoption("--backend-for")]()))
