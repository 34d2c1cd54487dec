"""The importer of a program's own modules: they get sites as they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from .modules import compile_module

__all__ = ["install_importer"]


class _Loader(SourceFileLoader):
    """The loader of a module with sites."""

    has_sites = True
    eagerly = False
    _names: dict[str, Any] | None = None  # of the module, between `create_module` and its run

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a new module, as Python's own importer would make it."""
        module = ModuleType(spec.name)
        self._names = vars(module)
        return module

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, with sites if the caller is about to run the module."""
        plain = super().get_code(fullname)  # from Python's own cache, or with the warnings of the source
        names, self._names = self._names, None
        if names is None:
            return plain
        source = self.get_data(self.path)
        return compile_module(source, self.path, names, False, self.eagerly, plain)

    # Python leaves out the frames of its importer in the traceback of a SyntaxError, and so this one.
    get_code.__code__ = get_code.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")


class _Finder:
    """The finder of modules that get sites."""

    def __init__(self, also: tuple[str, ...], wanted: Callable[[str], bool], eagerly: bool) -> None:
        self._also, self._wanted, self._eagerly = also, wanted, eagerly

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the import specification of a module that is to get sites; None for any other module."""
        also = name in self._also or name.startswith(tuple([one + "." for one in self._also]))
        if not also and name.partition(".")[0] in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if not also and not self._wanted(spec.origin):
            return spec
        spec.loader = loader = _Loader(spec.loader.name, spec.loader.path)
        loader.eagerly = self._eagerly
        return spec


def install_importer(also: tuple[str, ...], wanted: Callable[[str], bool], eagerly: bool = False) -> None:
    """Add an importer to `sys.meta_path` that puts sites into modules as they are imported.

    Parameters
    ----------
    also : tuple of str
        The names of modules and packages that get sites, wherever they are.
    wanted : callable
        ``wanted(file)`` says whether any other module gets sites; not asked for the standard library.
    eagerly : bool, optional
        Whether the modules' sites ask for plans at once, not when they are hot.
    """
    if also:
        import numpy  # noqa: F401  # which may import one of them before this package can compile it
    finder: Any = _Finder(also, wanted, eagerly)
    places = [k for k, one in enumerate(sys.meta_path) if one is PathFinder]
    sys.meta_path.insert(places[0] if places else len(sys.meta_path), finder)
