"""threadpoolctl's view of our threads: `threadpool_info` shows them, `threadpool_limits` limits them.

That package finds thread pools by the file names of loaded libraries.  Ours are compiled while the program
runs and have no file, so NumPy's C module, which is always loaded with them, stands for it.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["announce"]

_NAME = "threadpoolctl"
_PREFIX = "_multiarray_umath"


def announce() -> None:
    """Register our threads with threadpoolctl: now if it is loaded, else as soon as it is imported."""
    module = sys.modules.get(_NAME)
    if module is None:
        sys.meta_path.insert(0, _Watch())
    else:
        _register(module)


class _Watch:
    """A finder of modules that waits for the import of threadpoolctl, to register our threads with it.  It
    finds no module itself."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _NAME or self._asking:
            return None
        from importlib.util import find_spec

        self._asking = True
        try:
            spec = find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    _register(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _register(module: Any) -> None:
    """Add our controller to those of threadpoolctl; versions before 3.2 take none."""
    if not hasattr(module, "register") or not hasattr(module, "LibController"):
        return

    from . import __version__, config  # only programs with threadpoolctl need it at once

    class Controller(module.LibController):  # type: ignore[misc]  # its module may be absent
        """The threads of dcarray, whatever has started them."""

        user_api = internal_api = "dcarray"
        filename_prefixes = (_PREFIX,)

        def get_num_threads(self) -> int:
            return config.process_threads()

        def set_num_threads(self, num_threads: int) -> None:
            config.set_threads(num_threads)

        def get_version(self) -> str | None:
            return __version__

    module.register(Controller)
