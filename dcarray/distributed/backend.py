"""The functions of this package that the packages below it call; see `dcarray.core.backend.Backend`."""

from __future__ import annotations

from .consistency import united
from .dispatch import is_distributed, try_call, try_whole
from .executor import default_layout, run
from .functions.files import load, tofile
from .functions.numpy_source import by_definition, indexed
from .jobs import entropy
from .layouts import gather, layout_of, local_of, seen
from .linspace import spaced
from .random_ranked import drawn
from .reshape import divided

__all__ = [
    "by_definition", "default_layout", "divided", "drawn", "entropy", "gather", "indexed", "is_distributed",
    "layout_of", "load", "local_of", "run", "seen", "spaced", "tofile", "try_call", "try_whole", "united",
]  # fmt: skip
