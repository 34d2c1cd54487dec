"""Mathematical functions: glibc's vector library where it is there, the C library's scalar ones elsewhere.

A call of the scalar function carries the names of its vector variants, and LLVM's vectoriser calls those.
Where a variant exists, the scalar function is one lane of it, so that an element's result does not
depend on where a vector loop begins and ends or how the work is cut for threads.  The library's results
are within 4 ulp.
"""

from __future__ import annotations

from .builder import BITS, Builder

# NumPy's name -> C's.
_C_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "power": "pow",
}  # fmt: skip
FUNCTIONS = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "power"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2"),
        *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    }
)


def call(b: Builder, function: str, t: str, *args: str) -> str:
    """A function of NumPy's name on float or double values."""
    name = _C_NAMES.get(function, function)
    symbol = name + ("f" if t == "float" else "")
    typed = tuple((t, a) for a in args)
    variants = []
    for letter, width in b.machine.vector_math:
        lanes = width // BITS[t]
        variants.append((lanes, f"_ZGV{letter}N{lanes}{'v' * len(args)}_{symbol}"))
    if not variants:
        return b.call(t, symbol, *typed)
    lane = f"dc_{symbol}"
    names = []
    for lanes, variant in variants:
        vector = f"<{lanes} x {t}>"
        b.declare(variant, f"declare {vector} @{variant}({', '.join([vector] * len(args))}) #pure")
        b.declare(f"used:{variant}", "")
        names.append(f"_ZGV_LLVM_N{lanes}{'v' * len(args)}_{lane}({variant})")
    lanes, variant = variants[0]
    b.declare(lane, _one_lane(lane, variant, lanes, t, len(args)))
    return b.call(t, lane, *typed, attributes=f' #pure "vector-function-abi-variant"="{",".join(names)}"')


def _one_lane(name: str, variant: str, lanes: int, t: str, count: int) -> str:
    """The scalar function that is one lane of the vector function."""
    vector = f"<{lanes} x {t}>"
    lines = [f"define internal {t} @{name}({', '.join(f'{t} %x{i}' for i in range(count))}) #lane {{"]
    for i in range(count):
        lines.append(f"  %i{i} = insertelement {vector} poison, {t} %x{i}, i32 0")
        splat = f"<{lanes} x i32> zeroinitializer"
        lines.append(f"  %v{i} = shufflevector {vector} %i{i}, {vector} poison, {splat}")
    arguments = ", ".join(f"{vector} %v{i}" for i in range(count))
    lines.append(f"  %r = call {vector} @{variant}({arguments})")
    lines.append(f"  %y = extractelement {vector} %r, i32 0")
    return "\n".join([*lines, f"  ret {t} %y", "}"])
