"""Let a library's own ``np`` be dcarray for a while.

Wrapped arrays carry dcarray into a library by themselves wherever NumPy dispatches on its arguments.
``np.empty(shape)`` has no array among its arguments, so what a library creates and then fills is a plain
array.  Inside ``injected`` it is a wrapped one too.  The library's code stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np


class _Namespace(ModuleType):
    """dcarray's functions and, for the names that it does not have, NumPy's."""

    def __getattr__(self, name: str) -> Any:
        import dcarray

        value = getattr(dcarray, name, None)
        if value is None:
            value = getattr(np, name)
        setattr(self, name, value)
        return value


_NUMPY = _Namespace("numpy")


@contextmanager
def injected(*modules: ModuleType | str) -> Iterator[None]:
    """Replace NumPy by dcarray in the global names of modules while the block runs.

    Parameters
    ----------
    *modules : module or str
        Imported modules, or their names, which hold NumPy under some global name.

    Raises
    ------
    ValueError
        If a module is not imported or holds no NumPy.

    Examples
    --------
    >>> import dcarray as dc, matplotlib.colors          # doctest: +SKIP
    >>> with dc.injected(matplotlib.colors):              # doctest: +SKIP
    ...     shade = matplotlib.colors.LightSource().hillshade(dc.asarray(z))
    """
    places: list[tuple[dict[str, Any], str]] = []
    for module in modules:
        found = sys.modules.get(module) if isinstance(module, str) else module
        if found is None:
            raise ValueError(f"module {module!r} is not imported")
        names = [name for name, value in vars(found).items() if value is np]
        if not names:
            raise ValueError(f"module {found.__name__!r} holds no NumPy among its global names")
        places += [(vars(found), name) for name in names]
    try:
        for scope, name in places:
            scope[name] = _NUMPY
        yield
    finally:
        for scope, name in places:
            scope[name] = np
