"""Matrix products in C: blocked loops, or calls of a CBLAS that is chosen when the library is linked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from dcarray.ir.nodes import Call, Dim, Region, Window
from dcarray.lowering.libraries.dispatch import Library, all_alike
from dcarray.lowering.nest.access import Memory, equal, strides, total

from .size_text import size_text

LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""The letters of BLAS, by those of dtypes."""


def serves(call: Call, region: Region) -> bool:
    """Whether the C functions of this module can compute a product."""
    if call.attrs or not all_alike(call, region):
        return False
    memory = Memory(region)
    (out,), reads = call.writes, call.reads
    return all(memory.disjoint(out, window) for window in reads) and _axes(out, *reads) is not None


LIBRARY = Library("numpy", serves)
"""What a process that runs the program would call; here it is printed."""


def _axes(out: Window, a: Window, b: Window) -> tuple[int, bool, bool] | None:
    """Return the number of batch axes of a product, and whether each operand is a matrix (not a vector); None
    if it is not known at compile time which batch axes are broadcast."""
    matrix_a, matrix_b = len(a.shape) > 1, len(b.shape) > 1
    stack = max(len(a.shape) - 2, len(b.shape) - 2, 0)
    if len(out.shape) != stack + matrix_a + matrix_b:
        return None
    for window in (a, b):
        for k in range(1, len(window.shape) - 1):
            extent = window.shape[-2 - k] if k + 2 <= len(window.shape) else 1
            if not (extent == 1 or equal(extent, out.shape[stack - k])):
                return None
    return stack, matrix_a, matrix_b


def _steps(window: Window, region: Region) -> tuple[Dim, list[Dim]]:
    """Return the offset of a window's first element, and the stride along each domain axis, in elements."""
    array = next(array for array in region.arrays if array.name == window.array)
    start: Dim = 0
    steps: list[Dim] = [0] * len(window.shape)
    for index, step in zip(window.index, strides(array), strict=True):
        start = start + index.offset * step
        if index.axis is not None:
            steps[index.axis] = steps[index.axis] + index.stride * step
    return start, steps


def call_text(call: Call, region: Region, addresses: dict[str, str]) -> list[str]:
    """Return the C statements that compute a product; ``addresses`` has each array's address in C."""
    (out,), (a, b) = call.writes, call.reads
    axes = _axes(out, a, b)
    assert axes is not None
    stack, matrix_a, matrix_b = axes
    array = next(array for array in region.arrays if array.name == out.array)
    size = array.dtype.itemsize
    starts, moves = [], []
    for window in (out, a, b):
        start, steps = _steps(window, region)
        starts.append(start)
        moves.append(steps)
    m = a.shape[-2] if matrix_a else 1
    n, k = b.shape[-1] if matrix_b else 1, a.shape[-1]
    rows_c = moves[0][stack] if matrix_a else 0
    columns_c = moves[0][-1] if matrix_b else 0
    rows_a, columns_a = (moves[1][-2] if matrix_a else 0), moves[1][-1]
    rows_b, columns_b = (moves[2][-2], moves[2][-1]) if matrix_b else (moves[2][-1], 0)
    lines, inner = ["{"], "  "
    variables = [f"dc_s{axis}" for axis in range(stack)]
    for axis, name in enumerate(variables):
        count = size_text(out.shape[axis])
        lines.append(f"{inner}for (int64_t {name} = 0; {name} < {count}; {name}++) {{")
        inner += "  "
    places = []
    for window, start, steps in zip((out, a, b), starts, moves, strict=True):
        text = size_text(total((start, size)))
        shift = len(window.shape) - len(out.shape)
        if window is not out:  # the last axes of its stack are those of the product's
            shift = max(len(window.shape) - 2, 0) - stack
        for axis, name in enumerate(variables):
            own = axis + shift
            if own >= 0 and window.shape[own] != 1:
                step = size_text(total((steps[own], size)))
                text = f"dc_add({text}, dc_mul({name}, {step}, &dc_overflow), &dc_overflow)"
        places.append(f"dc_add({addresses[window.array]}, {text}, &dc_overflow)")
    numbers = (m, n, k, rows_c, columns_c, rows_a, columns_a, rows_b, columns_b)
    names = ["m", "n", "k", "cr", "cc", "ar", "ac", "br", "bc"]
    given = ", ".join([*"cab", *names])
    pairs = [*zip("cab", places, strict=True), *zip(names, map(size_text, numbers), strict=True)]
    lines += [f"{inner}const int64_t dc_g_{name} = {text};" for name, text in pairs]
    lines.append(f"{inner}if (dc_overflow) goto dc_too_large;")
    given = ", ".join(f"dc_g_{name}" for name, _ in pairs)
    lines.append(f"{inner}dc_{LETTERS[array.dtype.char]}matmul({given});")
    for _ in variables:
        inner = inner[:-2]
        lines.append(f"{inner}}}")
    return [*lines, "}"]


# ---- the functions -----------------------------------------------------------------------------------
_HEAD = """\
#if defined(__AVX512F__)
#define DC_VECTOR 64
#elif defined(__AVX__)
#define DC_VECTOR 32
#else
#define DC_VECTOR 16
#endif
#if defined(__clang__) || !defined(__FMA__)
#define DC_FUSED
#else
#define DC_FUSED __attribute__((optimize("fp-contract=fast")))
#endif
"""
_NO_BLAS = "#define dc_{letter}by_blas(...) 0\n"


def functions_text(chars: frozenset[str], blas: bool) -> str:
    """Return the C functions of products.

    Parameters
    ----------
    chars : frozenset of str
        The type characters of the products.
    blas : bool
        Whether matrices in a layout that BLAS knows are multiplied by a CBLAS.
    """
    parts = [_HEAD] if chars else []
    for char in sorted(chars):
        letter, complex_ = LETTERS[char], np.dtype(char).kind == "c"
        real = {"f": "float", "d": "double"}[char.lower()]
        words = {"REAL": real, "CBLAS": f"cblas_{letter}gemm"}
        words |= (
            {"SCALAR": "const void *", "POINTER": "const void *", "RESULT": "void *", "BY": ""}
            if complex_
            else {"SCALAR": real, "POINTER": f"const {real} *", "RESULT": f"{real} *", "BY": "*"}
        )
        parts.append(_read("blas_products.h", letter, words) if blas else _NO_BLAS.format(letter=letter))
        parts.append(_read("complex_products.h" if complex_ else "real_products.h", letter, words))
    return "".join(parts)


def _read(file: str, letter: str, words: dict[str, str]) -> str:
    """Return the text of a template file with the names and words of one dtype filled in."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    text = re.sub(r"NAME\((\w+)\)", rf"dc_{letter}\1", text)
    return re.sub(r"\b[A-Z]+\b", lambda word: words.get(word.group(), word.group()), text)
