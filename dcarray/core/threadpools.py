"""threadpoolctl's view of our threads: `threadpool_info` shows them, `threadpool_limits` limits them.

That package finds thread pools by the file names of loaded libraries.  NumPy's C module stands for ours,
which are in an extension whose name others may have, too.
"""

from __future__ import annotations

import sys
from typing import Any

from .when_imported import when_imported

__all__ = ["announce"]

_NAME = "threadpoolctl"
_PREFIX = "_multiarray_umath"


def announce() -> None:
    """Register our threads with threadpoolctl when it has been imported."""
    when_imported(_NAME, _register)


def _register() -> None:
    """Add our controller to those of threadpoolctl; versions before 3.2 take none."""
    module: Any = sys.modules[_NAME]
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
