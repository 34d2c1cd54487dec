"""Names that strings mention: libraries may look them up in the frame that calls them, or in the script."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from functools import lru_cache

from dcarray.lowering.runtime.parsing import parse

from .syntax_facts import NONE, Names

__all__ = ["mentioned", "mentions_main", "text_mentions"]

# Modules known to look no names up, as numexpr, pandas' `query`, patsy and DuckDB do, or `cProfile.run`.
_SILENT = (sys.stdlib_module_names - {"bdb", "cProfile", "code", "pdb", "profile", "trace"}) | {
    "PIL", "cupy", "cv2", "dcarray", "h5py", "joblib", "matplotlib", "mpi4py", "networkx", "numba", "numpy",
    "psutil", "pytest", "scipy", "skimage", "sklearn", "torch", "tqdm", "yaml",
}  # fmt: skip
_LOOK_UP = ("bmat", "measure")  # NumPy's, the second one for tests
_WORD = re.compile(r"[^\W\d]\w*")


def mentioned(nodes: Iterable[ast.AST]) -> Names:
    """Return the words of the strings in a module, if it imports modules that may look names up, or calls
    `numpy.bmat`, which does; those of its documentation only if it imports `doctest`."""
    strings: list[ast.Constant] = []
    documentation: set[int] = set()
    looks_up = is_tested = False
    for node in nodes:
        match node:
            case ast.Constant(str()):
                strings.append(node)
            case ast.Expr(ast.Constant() as text):
                documentation.add(id(text))
            case ast.alias("doctest"):
                is_tested = looks_up = True
            case ast.Import(names):
                looks_up |= any(one.name.partition(".")[0] not in _SILENT for one in names)
            case ast.ImportFrom(module, names, level):
                looks_up |= bool(level) or str(module).partition(".")[0] not in _SILENT
                looks_up |= any(one.name in _LOOK_UP for one in names)
            case ast.Attribute(_, name) | ast.Name(name) if name in _LOOK_UP:
                looks_up = True
    if not looks_up:
        return NONE
    texts = [str(one.value) for one in strings if is_tested or id(one) not in documentation]
    return frozenset([word for text in texts for word in _WORD.findall(text)])


@lru_cache(maxsize=8)
def text_mentions(text: str) -> Names:
    """Return the same for a module's text; none if it cannot be parsed."""
    try:
        return mentioned(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return NONE


def mentions_main(nodes: Iterable[ast.AST]) -> bool:
    """Whether a script does more with the name of the module ``__main__`` than to compare ``__name__``, or
    may get at its global names in another way."""
    strings: set[int] = set()
    compared: set[int] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom("__main__") | ast.alias("__main__" | "modules") | ast.Name("modules"):
                return True
            case ast.Attribute(_, "modules" | "__globals__" | "f_globals" | "getmodule" | "import_module"):
                return True
            case ast.alias("import_module" | "getmodule") | ast.Name("__import__"):
                return True
            case ast.Constant(str(text)) if "__main__" in text:
                strings.add(id(node))
            case ast.Compare(ast.Name("__name__"), _, [other]) | ast.Compare(
                other, _, [ast.Name("__name__")]
            ):
                compared.add(id(other))
    return not strings <= compared
