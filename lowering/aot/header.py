"""The C header of a library: types, prototypes, the layout of arrays, and status constants."""

from __future__ import annotations

import keyword
import re

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Dim

from .interface import STATUSES, DType, Function, Parameter, Refused

_C_WORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
    "volatile", "while", "asm", "typeof", "bool", "true", "false", "class", "catch", "delete",
    "explicit", "export", "friend", "mutable", "namespace", "new", "operator", "private", "protected",
    "public", "template", "this", "throw", "try", "typename", "using", "virtual", "wchar_t", "nullptr",
    "constexpr", "alignas", "alignof", "linux", "unix", "NULL", "and", "or", "not", "xor",
})  # fmt: skip
_TYPES = {"bool": "uint8_t", "float16": "uint16_t", "float32": "float", "float64": "double"}


_PREFACE = """\
/* lib{stem}: functions that dcarray compiled.  They need neither Python nor NumPy.

   Arrays are in C order without gaps: element (i, j) of A[N][M] is A[i * M + j].  Sizes are those of the
   arrays, at most 2**40 - 1.  Memory of all arguments and results is the caller's; results need not be
   initialised.  An array that is written (no const) must not share memory with any other.  bool is one byte,
   0 or 1; float16 is its bits.  Every function may run in several threads at once, on arrays that no other
   thread writes, and uses one thread.  Where a status is not OK nothing was written, but for FAILED_CHECK,
   and for TOO_LARGE and NO_MEMORY of what only a loop needs. */"""


def c_name(name: str) -> str:
    """Return the C name for a Python name: with a ``_`` appended if it is a word of C or Python.

    Raises
    ------
    Refused
        If the name is no identifier in ASCII.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise Refused(f"{name} is no name in C")
    return f"{name}_" if name in _C_WORDS or keyword.iskeyword(name) else name


def type_of(dtype: DType, stem: str) -> str:
    """Return the C type of a dtype in the header of the library ``stem``."""
    if dtype.kind == "c":
        return f"{stem}_{dtype.name}"
    return _TYPES.get(dtype.name) or f"{dtype.name}_t"


def prototype(function: Function, stem: str, inside: bool = False) -> str:
    """Return the prototype of a function; ``inside``: with the arguments' names that its body uses."""

    def named(name: str) -> str:
        return f"dc_p_{name}" if inside else c_name(name)

    given = [f"int64_t {named(name)}" for name in function.sizes]
    for p in function.parameters:
        kind = type_of(p.dtype, stem)
        if p.kind == "size":
            given.append(f"int64_t {named(p.name)}")
        elif p.kind == "scalar":
            given.append(f"{kind} {named(p.name)}")
        else:
            given.append(f"{'' if p.written else 'const '}{kind} *{named(p.name)}")
    arrays = {array.name: array for array in function.region.arrays}
    for name, result in function.given_results:
        given.append(f"{type_of(arrays[result.name].dtype, stem)} *{named(name)}")
    return f"int32_t {function.name}({', '.join(given) or 'void'})"


def header_text(functions: tuple[Function, ...], stem: str) -> str:
    """Return the text of a header."""
    guard, prefix = f"{stem.upper()}_H", stem.upper()
    lines = [
        _PREFACE.format(stem=stem),
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* What every function returns. */",
        "enum {",
        *(f"  {prefix}_{name} = {k}, /* {meaning} */" for k, (name, meaning) in enumerate(STATUSES)),
        "};",
        "",
    ]
    used = {p.dtype for f in functions for p in f.parameters}
    used |= {array.dtype for f in functions for array in f.region.arrays if array.role == "out"}
    for dtype in (np.dtype(np.complex64), np.dtype(np.complex128)):
        if dtype in used:
            part = "float" if dtype.itemsize == 8 else "double"
            lines.append(f"typedef struct {{ {part} re, im; }} {stem}_{dtype.name};")
    for function in functions:
        lines += ["", *_described(function), prototype(function, stem) + ";"]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(lines)


def shape_text(shape: tuple[Dim, ...]) -> str:
    """Return the shape of an array as in a C declaration: ``[N][M]``."""
    return "".join(f"[{dims.show(extent)}]" for extent in shape)


def _described(function: Function) -> list[str]:
    lines = [f"/* {function.name}"]
    if function.sizes:
        lines.append(f"   {', '.join(function.sizes)}: sizes")
    for p in function.parameters:
        lines.append(f"   {c_name(p.name)}{shape_text(p.shape)}: {_kind(p)}")
    arrays = {array.name: array for array in function.region.arrays}
    names = {result.name: name for name, result in function.given_results}
    for k, result in enumerate(function.results):
        which = f" {k}" if len(function.results) > 1 else ""
        if result.kind == "alias":
            lines.append(f"   returns{which}: the argument {result.name}")
        elif result.kind == "value":
            lines.append(f"   returns{which}: {result.value!r}")
        else:
            array = arrays[result.name]
            lines.append(
                f"   {names[result.name]}{shape_text(array.shape)}: result{which}, {array.dtype.name}"
            )
    guards = [dims.show(guard) for guard in function.region.guards]
    if guards:
        lines.append(f"   GUARD unless {' and '.join(guards)}")
    lines[-1] += " */"
    return lines


def _kind(p: Parameter) -> str:
    if p.kind == "size":
        return "integer, at most 2**40 - 1 in magnitude"
    return f"{p.dtype.name}{', written' if p.written else ''}"
