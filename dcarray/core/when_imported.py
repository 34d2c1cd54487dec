"""Functions that are called when the program imports a module, such as NumPy, that it may never import."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["when_imported"]

_actions: dict[str, list[Callable[[], object]]] = {}
_asked: set[tuple[int, str]] = set()  # threads in which the other finders are asked for modules


def when_imported(name: str, action: Callable[[], object]) -> None:
    """Call a function without arguments when a module has been imported: at once, if it has been."""
    if sys.modules.get(name) is not None:
        action()
        return
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _actions.setdefault(name, []).append(action)


class _Finder:
    """The finder of the modules with actions, in `sys.meta_path` as long as one of them is not imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the import specification of such a module as the other finders give it, whose loader runs
        the actions, too; None for other modules."""
        here = get_ident(), name
        if name not in _actions or here in _asked:  # another finder may ask all that there are
            return None
        _asked.add(here)
        try:
            later = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
            others = [one.find_spec for one in later if hasattr(one, "find_spec")]
            spec = next(filter(None, (find(name, path, target) for find in others)), None)
        finally:
            _asked.discard(here)
        if spec is not None and hasattr(spec.loader, "exec_module") and hasattr(spec.loader, "__dict__"):
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                vars(loader).pop("exec_module", None)
                execute(module)
                for action in _actions.pop(module.__name__, ()):
                    with suppress(Exception):  # another module of this name, such as a stub of NumPy
                        action()
                if not _actions and self in sys.meta_path:
                    sys.meta_path.remove(self)

            # Python leaves out the frames of its importer in tracebacks, and so this one.
            exec_module.__code__ = exec_module.__code__.replace(
                co_filename="<frozen importlib._bootstrap_external>"
            )
            loader.exec_module = exec_module
        return spec


_FINDER: Any = _Finder()
