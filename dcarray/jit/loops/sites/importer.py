"""The importer of a program's own modules: they get sites as they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from .modules import compile_module

__all__ = ["install_importer"]


class _Loader(SourceFileLoader):
    """The loader of a module with sites."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, with sites."""
        source = self.get_data(self.path)
        exec(compile_module(source, self.path, vars(module), is_script=False), vars(module))


class _Finder:
    """The finder of modules that get sites."""

    def __init__(self, wanted: Callable[[str, str], bool]) -> None:
        self._wanted = wanted

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the specification of a module with sites; None of any other."""
        if name.partition(".")[0] in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if not self._wanted(name, spec.origin):
            return spec
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install_importer(wanted: Callable[[str, str], bool]) -> None:
    """Have modules get sites from now on.

    Parameters
    ----------
    wanted : callable
        Whether a module, by its name and file, gets some.
    """
    finder: Any = _Finder(wanted)
    places = [k for k, one in enumerate(sys.meta_path) if one is PathFinder]
    sys.meta_path.insert(places[0] if places else len(sys.meta_path), finder)
