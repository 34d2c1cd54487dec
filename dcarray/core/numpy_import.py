"""What is done when the program imports NumPy: a program that never does runs without it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["with_numpy"]

_actions: list[Callable[[], object]] = []


def with_numpy(action: Callable[[], object]) -> None:
    """Call a function without arguments when NumPy has been imported: at once, if it has been."""
    if "numpy" in sys.modules:
        action()
        return
    if not _actions:
        finder: Any = _Finder()
        sys.meta_path.insert(0, finder)
    _actions.append(action)


class _Finder:
    """The finder of NumPy, which is then loaded as its own loader does."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the import specification of NumPy as the other finders give it; None for other modules."""
        if name != "numpy":
            return None
        others = [one.find_spec for one in sys.meta_path if one is not self and hasattr(one, "find_spec")]
        spec = next(filter(None, (find(name, path, target) for find in others)), None)
        if spec is not None and spec.loader is not None:
            loader: Any = _Loader(spec.loader)
            spec.loader = loader
        return spec


class _Loader:
    """The loader of NumPy, in place of its own one until it is loaded."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module as NumPy's own loader makes it."""
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run NumPy's own code, and then the actions."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Finder)]
        while _actions:
            _actions.pop(0)()

    # Python leaves out the frames of its importer in tracebacks, and so this one.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
