"""Forms over many ranks of files: every rank writes and reads its own part."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.config import current
from dcarray.ranks import parted, several
from dcarray.store import compiles

from .ranked import FORMS, NO_FORM, array_of, piece_of

if TYPE_CHECKING:
    from dcarray.comm.piece import Piece

__all__ = ["load"]


def _name(file: Any) -> str | None:
    """The name of a file that all ranks can open."""
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    return name if isinstance(name, str) else None


def _save(file: Any, arr: Any, allow_pickle: bool = True) -> Any:
    from dcarray.comm import files

    name, x = _name(file), piece_of(arr)
    if name is None or x is None:
        return NO_FORM
    files.save(name if name.endswith(".npy") else name + ".npy", x)
    return None


FORMS[np.save] = _save


def load(*args: Any, **kwargs: Any) -> Any:
    """`numpy.load` of an array that is to lie in blocks; `NO_FORM` for any other, and in a single process.

    Raises
    ------
    OSError
        As NumPy's, on all ranks.
    """
    if several() is None or len(args) != 1 or kwargs:
        return NO_FORM
    with parted():
        found = _loaded(args[0])
    return NO_FORM if found is None else array_of(found)


def _loaded(file: Any) -> Piece | None:
    from dcarray.comm import files
    from dcarray.placing import default_layout

    name, comm, options = _name(file), several(), current()
    if name is None or not name.endswith(".npy") or comm is None:
        return None
    try:
        shape, dtype = files.shape_in(name, comm)
    except ValueError:  # what NumPy has words for
        return None
    if not compiles(dtype) or not shape or math.prod(shape) <= options.distribute_above:
        return None
    return files.load(name, default_layout(shape, options, comm), comm)
