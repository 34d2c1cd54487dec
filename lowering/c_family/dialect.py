"""Dialects of the C family: what differs between plain C, CUDA C, OpenCL C and HLS C++ in the same text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dcarray.ir.records import record
from dcarray.lowering.kernel.nodes import DType


@record(frozen=True, slots=True)
class Dialect:
    """The notation of types, literals, functions and pointers in a dialect of C.

    Attributes
    ----------
    name : str
        The dialect's name in messages.
    head : str
        The beginning of each text: includes, the structs ``complex64`` and ``complex128`` (``re``, ``im``),
        the functions ``bits_float32`` and ``bits_float64`` of an unsigned integer, and, where there is no
        floating-point environment, ``feraiseexcept`` and quiet comparisons (``isless``, ...) as macros.
    types : mapping of str to str
        The C types by the names of dtypes; for a dtype not there it is the dtype's name and ``_t``.
    composite : str
        The text before the parts in braces of a value of the struct ``{T}``.
    int64, uint64, int64_min : str
        Patterns of 64-bit literals, and the text of the least int64.
    float32_suffix : str
        The suffix of the names of mathematical functions for float32.
    function, phase : str
        Qualifiers of helper functions, and of the functions of phases.
    global_space : str
        The address space of arrays, before a pointer's type.
    restrict : str
        The qualifier of pointers that alias no other.
    contraction : str
        The pragma in every function that forbids fused multiply-add.
    vector_loops : bool
        Whether loops may be marked with OpenMP's ``simd``.
    wraps : bool
        Whether signed integers wrap; otherwise they are added, subtracted and multiplied as unsigned ones.
    numpy_loops : bool
        Whether code can call NumPy's own loops, by their addresses.
    runs_phases : bool
        Whether the text has a function ``run`` that runs all phases and returns the floating-point flags.
    native_half : bool
        Whether the dialect has a float16 type; otherwise it is stored as its bits, and the functions
        ``half_to_float``, ``float_to_half`` and ``double_to_half`` convert it.
    checks_conversions : bool
        Whether conversions of floats to integers test the range, since the machine does not treat numbers out
        of range as x86 does.
    c_library : bool
        Whether the C library is there, which has the functions of Python's ``math``.
    failed_check : str
        The statement to run when a run-time check of a value fails.
    """

    name: str
    head: str
    types: Mapping[str, str] = field(default_factory=dict)
    composite: str = "({T})"
    int64: str = "INT64_C({})"
    uint64: str = "UINT64_C({})"
    int64_min: str = "INT64_MIN"
    float32_suffix: str = "f"
    function: str = "static inline "
    phase: str = ""
    global_space: str = ""
    restrict: str = "restrict "
    contraction: str = ""
    vector_loops: bool = True
    wraps: bool = True
    numpy_loops: bool = True
    runs_phases: bool = True
    native_half: bool = True
    checks_conversions: bool = False
    c_library: bool = False
    failed_check: str = "feraiseexcept(FE_INVALID);"

    def type(self, dtype: DType) -> str:
        """Return the C type of a dtype."""
        return self.types.get(dtype.name) or f"{dtype.name}_t"

    def unsigned(self, dtype: DType) -> str:
        """Return the unsigned C type of the same width as an integer dtype."""
        return self.type(np.dtype(f"u{dtype.itemsize}"))

    @property
    def index(self) -> str:
        """The type of sizes and indices."""
        return self.type(np.dtype(np.int64))

    def struct(self, dtype: DType) -> str:
        """Return the text before the parts in braces of a complex value."""
        return self.composite.format(T=self.type(dtype))

    def widened_half(self, text: str) -> str:
        """Return the text that converts a float16 value to float32."""
        return f"(float){text}" if self.native_half else f"half_to_float({text})"

    def rounded_half(self, text: str, source: DType) -> str:
        """Return the text that converts a float32 or float64 value to float16."""
        if self.native_half:
            return f"({self.type(np.dtype(np.float16))}){text}"
        return f"{'double' if source.itemsize == 8 else 'float'}_to_half({text})"

    def suffix(self, dtype: DType) -> str:
        """Return the suffix of the names of mathematical functions for a dtype."""
        return self.float32_suffix if dtype in (np.float32, np.complex64) else ""


C_TYPES = {
    "bool": "uint8_t", "float16": "_Float16", "float32": "float", "float64": "double",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip

# GCC's vectoriser (12) makes one instruction of products and the sums and differences that take turns behind
# them, as in complex division, where it was told not to contract; so it has no such instructions.
C = Dialect(
    "C",
    """#ifdef __FMA__
#define FUSED
#pragma GCC target("no-fma,no-avx512f")
#endif
#include <fenv.h>
#include <math.h>
#include <stdint.h>
typedef struct { float re, im; } complex64;
typedef struct { double re, im; } complex128;
static inline float bits_float32(uint32_t u) { union { uint32_t u; float x; } v = {u}; return v.x; }
static inline double bits_float64(uint64_t u) { union { uint64_t u; double x; } v = {u}; return v.x; }""",
    C_TYPES,
)
"""C11 with GNU extensions, compiled with ``-fwrapv -ffp-contract=off``."""
