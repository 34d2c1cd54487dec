"""What is done when the program imports NumPy, or a part of it: a program that never does runs without it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["with_numpy"]

_actions: dict[str, list[Callable[[], object]]] = {}


def with_numpy(action: Callable[[], object], name: str = "numpy") -> None:
    """Call a function without arguments when NumPy, or another module, has been imported: at once, if it has
    been."""
    if name in sys.modules:
        action()
        return
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _actions.setdefault(name, []).append(action)


class _Finder:
    """The finder of the modules with actions, which are then loaded as their own loaders do."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the import specification of such a module as the other finders give it; None for other
        modules."""
        if name not in _actions:
            return None
        others = [one.find_spec for one in sys.meta_path if one is not self and hasattr(one, "find_spec")]
        spec = next(filter(None, (find(name, path, target) for find in others)), None)
        if spec is not None and spec.loader is not None:
            loader: Any = _Loader(spec.loader)
            spec.loader = loader
        return spec


_FINDER: Any = _Finder()


class _Loader:
    """The loader of a module with actions, in place of its own one until it is loaded."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module as its own loader makes it."""
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's own code, and then the actions."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        for action in _actions.pop(module.__name__, ()):
            action()
        if not _actions and _FINDER in sys.meta_path:
            sys.meta_path.remove(_FINDER)

    # Python leaves out the frames of its importer in tracebacks, and so this one.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
