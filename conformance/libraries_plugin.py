"""The pytest plugin of `conformance.libraries`: dcarray as a further backend of a library's own tests.

``--backend-for LIBRARY`` names the library, whose files are not changed.  If its tests are parametrised with
backends, the parameters are replaced by dcarray's namespace; if they create arrays of one fixed library, that
name is bound to dcarray's namespace.  Only tests that use dcarray's arrays are selected.
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
    """Replace the parameters of a library's fixture by a single one, for dcarray."""
    if fixture in metafunc.fixturenames:
        parameter = pytest.param(value, id="dcarray", marks=marks)
        mark = pytest.mark.parametrize(fixture, [parameter], indirect=True)
        metafunc.definition.add_marker(mark)


def _has_ours(item: Any) -> bool:
    """Whether one of the test's parameters is dcarray's namespace."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(isinstance(value, str) and value in (NAME, "dcarray") for value in parameters)


class _Library:
    """The adapter that adds a backend to a library's tests; this one is for tests with module names."""

    def generate(self, metafunc: pytest.Metafunc) -> None:
        """Change the parameters of a test; called before pytest reads them."""

    def chosen(self, item: Any) -> bool:
        """Whether the test uses dcarray's arrays."""
        return _has_ours(item)


class _Scipy(_Library):
    """The adapter for SciPy: tests have the fixture ``xp``, and markers with the names of backends."""

    def __init__(self) -> None:
        importlib.import_module("scipy.conftest").xp_known_backends.add(NAME)

    def generate(self, metafunc: pytest.Metafunc) -> None:
        _parametrised(metafunc, "xp", STANDARD, pytest.mark.array_api_backends)

    def chosen(self, item: Any) -> bool:
        return "xp" in item.fixturenames


class _UsualScipy(_Library):
    """The adapter for SciPy without ``SCIPY_ARRAY_API``: tests get dcarray's namespace as NumPy's.

    Results may be NumPy's arrays, since SciPy then never looks up a namespace; the tests' assertions about
    namespaces are disabled.
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
    """The same for those modules of SciPy that check whether an argument is a `numpy.ndarray`."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("_interpolation", "_morphology"):
            dc.accelerate(importlib.import_module(f"scipy.ndimage.{name}"))


class _Sklearn(_Library):
    """The adapter for scikit-learn: functions that list the namespaces create the parameters."""

    def __init__(self) -> None:
        module: Any = importlib.import_module("sklearn.utils._array_api")
        module.yield_namespaces = lambda include_numpy_namespaces=True: iter([NAME])


class _Compat(_Library):
    """The adapter for array-api-compat: test modules share lists of backends' names."""

    def __init__(self) -> None:
        importlib.import_module("array_api_compat.tests._helpers").all_libraries[:] = [NAME]


class _Backend:
    """A member of array-api-extra's enumeration of backends, for dcarray."""

    name = modname = value = NAME

    def like(self, *others: Any) -> bool:
        """Whether this is one of some backends."""
        return any(self.modname == other.modname for other in others)


class _Extra(_Library):
    """The adapter for array-api-extra: tests have the fixture ``library``, which determines ``xp``."""

    def __init__(self) -> None:
        self.backend = _Backend()

    def generate(self, metafunc: pytest.Metafunc) -> None:
        _parametrised(metafunc, "library", self.backend)

    def chosen(self, item: Any) -> bool:
        return "library" in item.fixturenames


class _Xarray(_Library):
    """The adapter for xarray: one module has a table of namespaces, another imports array-api-strict."""

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
    """The adapter for opt_einsum: its tests create NumPy's arrays, so ``np`` is bound to dcarray."""

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
    """Add the option of the plugin."""
    parser.getgroup("libraries").addoption("--backend-for", choices=LIBRARIES, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the library before its test modules are imported."""
    config.pluginmanager.register(_Plugin(LIBRARIES[config.getoption("--backend-for")]()))
