"""C texts of operations, constants, casts and indices.

``TEMPLATES`` holds expressions by the kind of the first argument's dtype: ``b`` bool (a byte holding 0 or 1),
``i`` and ``u`` signed and unsigned integers, ``f`` real floating point of 32 or 64 bits, ``c`` complex (the
struct ``{re, im}``).  In them ``{0}``, ``{1}``, ``{2}`` are the arguments, ``{C}`` the text before the
parts of a complex result, ``{s}`` the suffix of libm's functions, and ``{f}`` that of constants.  ``BODIES``
holds the bodies of those that need a function.  C cannot do an operation that is in neither exactly as NumPy
does.  Signed arithmetic wraps: if it does not in a dialect, it is done with unsigned integers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import numpy as np

from dcarray.ir.ops import C_LIBRARY, OPS
from dcarray.lowering.kernel.nodes import STEPS, Affine, DType, Lit

from .complex_functions import COMPLEX
from .dialect import C, Dialect

_LIBM = (
    "sqrt floor ceil trunc rint exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan sinh cosh tanh fabs"
    " arcsin:asin arccos:acos arctan:atan arcsinh:asinh arccosh:acosh arctanh:atanh absolute:fabs"
)
_LIBM2 = "fmod copysign nextafter hypot arctan2:atan2 power:pow array_power:pow float_power:pow"


def _templates() -> dict[tuple[str, str], str]:
    table: dict[tuple[str, str], str] = {}

    def put(kinds: str, **templates: str) -> None:
        table.update({(name, kind): text for kind in kinds for name, text in templates.items()})

    for names, args in ((_LIBM, "{0}"), (_LIBM2, "{0}, {1}")):
        for name in names.split():
            op, _, libm = name.partition(":")
            put("f", **{op: f"{libm or op}{{s}}({args})"})
    for name in C_LIBRARY:  # of float64 alone
        args = "{0}, {1}" if OPS[name].nin == 2 else "{0}"
        put("f", **{name: f"{name.removeprefix('c_')}({args})"})
    # Both values of a where and of a logical operation are computed, as in NumPy: no branches, no && and ||.
    put("biufc", where="{0} ? {1} : {2}", positive="{0}", real="{0}", conjugate="{0}")
    put("biuf", logical_and="({0} != 0) & ({1} != 0)", logical_or="({0} != 0) | ({1} != 0)")
    put("biuf", logical_xor="({0} != 0) != ({1} != 0)", logical_not="{0} == 0", imag="0")
    put("biuf", equal="{0} == {1}", not_equal="{0} != {1}")
    put("biu", bitwise_and="{0} & {1}", bitwise_or="{0} | {1}", bitwise_xor="{0} ^ {1}")
    put("biu", less="{0} < {1}", less_equal="{0} <= {1}", greater="{0} > {1}", greater_equal="{0} >= {1}")
    put("biu", isnan="0", isinf="0", isfinite="1", fmax="{0} > {1} ? {0} : {1}", fmin="{0} < {1} ? {0} : {1}")
    put("biu", maximum="{0} > {1} ? {0} : {1}", minimum="{0} < {1} ? {0} : {1}")
    put("b", add="{0} | {1}", multiply="{0} & {1}", invert="!{0}", absolute="{0}")
    put(
        "iuf", add="{0} + {1}", subtract="{0} - {1}", multiply="{0} * {1}", negative="-{0}",
        square="{0} * {0}",
    )  # fmt: skip
    put("iu", invert="~{0}", floor="{0}", ceil="{0}", trunc="{0}", rint="{0}")
    put("u", absolute="{0}", sign="{0} > 0", signbit="0", bitwise_count="__builtin_popcountll({0})")
    put("i", absolute="{0} < 0 ? -{0} : {0}", sign="({0} > 0) - ({0} < 0)", signbit="{0} < 0")
    put("i", bitwise_count="__builtin_popcountll({0} < 0 ? -(uint64_t){0} : (uint64_t){0})")
    # The quiet comparisons: C's own raise the invalid flag for a NaN.
    put("f", less="isless({0}, {1})", less_equal="islessequal({0}, {1})")
    put("f", greater="isgreater({0}, {1})", greater_equal="isgreaterequal({0}, {1})")
    put("f", divide="{0} / {1}", reciprocal="1 / {0}", signbit="!!signbit({0})")
    put("f", isnan="!!isnan({0})", isinf="!!isinf({0})", isfinite="!!isfinite({0})")
    put("f", maximum="isgreater({0}, {1}) || isnan({0}) ? {0} : {1}")
    put("f", minimum="isless({0}, {1}) || isnan({0}) ? {0} : {1}")
    put("f", fmax="isgreater({0}, {1}) || isnan({1}) ? {0} : {1}")
    put("f", fmin="isless({0}, {1}) || isnan({1}) ? {0} : {1}")
    # NumPy's vector code takes the second of two equal values (the zeros differ), its float16 the first.
    put("f", maximum_half="isgreaterequal({0}, {1}) || isnan({0}) ? {0} : {1}")
    put("f", minimum_half="islessequal({0}, {1}) || isnan({0}) ? {0} : {1}")
    put("f", fmax_half="isgreaterequal({0}, {1}) || isnan({1}) ? {0} : {1}")
    put("f", fmin_half="islessequal({0}, {1}) || isnan({1}) ? {0} : {1}")
    put("f", sign="isgreater({0}, 0) ? 1 : isless({0}, 0) ? -1 : {0} == 0 ? 0 : {0}")
    put("f", heaviside="isnan({0}) ? {0} : {0} == 0 ? {1} : {0} < 0 ? 0 : 1")
    put("f", deg2rad="{0} * (3.14159265358979323846{f} / 180.0{f})")
    put("f", rad2deg="{0} * (180.0{f} / 3.14159265358979323846{f})")
    put("f", ldexp="ldexp{s}({0}, {1})", complex="{C}{{{0}, {1}}}")
    put("c", real="{0}.re", imag="{0}.im", conjugate="{C}{{{0}.re, -{0}.im}}")
    put("c", add="{C}{{{0}.re + {1}.re, {0}.im + {1}.im}}", negative="{C}{{-{0}.re, -{0}.im}}")
    put("c", subtract="{C}{{{0}.re - {1}.re, {0}.im - {1}.im}}", absolute="hypot{s}({0}.re, {0}.im)")
    put("c", logical_not="({0}.re == 0) & ({0}.im == 0)", isfinite="!!isfinite({0}.re) & !!isfinite({0}.im)")
    put("c", equal="({0}.re == {1}.re) & ({0}.im == {1}.im)", isnan="!!isnan({0}.re) | !!isnan({0}.im)")
    put("c", not_equal="({0}.re != {1}.re) | ({0}.im != {1}.im)", isinf="!!isinf({0}.re) | !!isinf({0}.im)")
    return table


TEMPLATES = _templates()

_MULTIPLY = """
  /* NumPy's vector code multiplies with fused operations where the processor has them. */
#ifdef FUSED
  return C{fmaS(a.re, b.re, -(a.im * b.im)), fmaS(a.re, b.im, a.im * b.re)};
#else
  return C{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
#endif
"""

# Function bodies of (T a, T b) by name and kinds.  U is T's unsigned twin, R the type of a complex number's
# parts, S the suffix of libm's functions, C what stands before the parts of a complex number.
BODIES: dict[tuple[str, str], str] = {
    ("left_shift", "iu"): " return (U)b < 8 * sizeof(T) ? (T)((U)a << b) : 0; ",
    ("right_shift", "iu"): " return (U)b < 8 * sizeof(T) ? (T)(a >> b) : (T)-(a < 0); ",
    ("add_fits", "iu"): " T r; return !__builtin_add_overflow(a, b, &r); ",
    ("subtract_fits", "iu"): " T r; return !__builtin_sub_overflow(a, b, &r); ",
    ("multiply_fits", "iu"): " T r; return !__builtin_mul_overflow(a, b, &r); ",
    ("floor_divide", "iu"): """
  if (b == 0) { feraiseexcept(FE_DIVBYZERO); return 0; }
  if ((T)-1 < 0 && b == (T)-1) {
    if (a != 0 && a == (T)-(U)a) feraiseexcept(FE_OVERFLOW);
    return (T)-(U)a;
  }
  return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
""",
    ("remainder", "iu"): """
  if (b == 0) { feraiseexcept(FE_DIVBYZERO); return 0; }
  if ((T)-1 < 0 && b == (T)-1) return 0;
  T r = (T)(a % b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
""",
    ("fmod", "iu"): """
  if (b == 0) { feraiseexcept(FE_DIVBYZERO); return 0; }
  return (T)-1 < 0 && b == (T)-1 ? 0 : (T)(a % b);
""",
    ("gcd", "iu"): """
  U x = a < 0 ? (U)-(U)a : (U)a, y = b < 0 ? (U)-(U)b : (U)b;
  while (y) { U r = (U)(x % y); x = y; y = r; }
  return (T)x;
""",
    ("lcm", "iu"): """
  U x = a < 0 ? (U)-(U)a : (U)a, y = b < 0 ? (U)-(U)b : (U)b, p = x, q = y;
  while (q) { U r = (U)(p % q); p = q; q = r; }
  return p ? (T)(U)(x / p * y) : 0;
""",
    ("floor_divide", "f"): """
  if (b == 0) return a / b;
  T mod = fmodS(a, b), div = (a - mod) / b;
  if (mod != 0 && isless(b, 0) != isless(mod, 0)) div -= 1;
  if (div == 0) return copysignS(0, a / b);
  T low = floorS(div);
  return isgreater(div - low, (T)0.5) ? low + 1 : low;
""",
    ("remainder", "f"): """
  T mod = fmodS(a, b);
  if (b == 0) return mod;
  if (mod == 0) return copysignS(0, b);
  return isless(b, 0) != isless(mod, 0) ? mod + b : mod;
""",
    ("logaddexp", "f"): """
  if (a == b) return a + (T)0.693147180559945309417232121458176568;
  T d = a - b;
  return isgreater(d, 0) ? a + log1pS(expS(-d)) : islessequal(d, 0) ? b + log1pS(expS(d)) : d;
""",
    ("logical_and", "c"): " return ((a.re != 0) | (a.im != 0)) & ((b.re != 0) | (b.im != 0)); ",
    ("logical_or", "c"): " return (a.re != 0) | (a.im != 0) | (b.re != 0) | (b.im != 0); ",
    ("logical_xor", "c"): " return ((a.re != 0) | (a.im != 0)) != ((b.re != 0) | (b.im != 0)); ",
    ("multiply", "c"): _MULTIPLY,
    ("square", "c"): "\n  T b = a;" + _MULTIPLY,
    ("divide", "c"): """
  R x = fabsS(b.re), y = fabsS(b.im);
  if (isgreaterequal(x, y)) {
    if (x == 0 && y == 0) return C{a.re / x, a.im / y};
    R rat = b.im / b.re, scl = 1 / (b.re + b.im * rat);
    return C{(a.re + a.im * rat) * scl, (a.im - a.re * rat) * scl};
  }
  R rat = b.re / b.im, scl = 1 / (b.im + b.re * rat);
  return C{(a.re * rat + a.im) * scl, (a.im * rat - a.re) * scl};
""",
}


def _complex_order() -> dict[tuple[str, str], str]:
    """Return C texts of comparisons of complex numbers: by the real parts, then by the imaginary parts."""
    table = {}
    parts = "!isnan(a.im) & !isnan(b.im)"
    for word, way in (("less", "isless"), ("greater", "isgreater")):
        first = f"({way}(a.re, b.re) & {parts})"
        for name, second in ((word, way), (f"{word}_equal", f"{way}equal")):
            table[name, "c"] = f"{first} | ((a.re == b.re) & {second}(a.im, b.im))"
    either = {"a": "isnan(a.re) | isnan(a.im)", "b": "isnan(b.re) | isnan(b.im)"}
    chosen = {
        "maximum": ("a", "greater"),
        "minimum": ("a", "less"),
        "fmax": ("b", "greater"),
        "fmin": ("b", "less"),
    }
    for name, (taken, order) in chosen.items():
        table[name, "c"] = f"{either[taken]} | ({table[f'{order}_equal', 'c']}) ? a : b"
    return {key: f" return {text}; " for key, text in table.items()}


BODIES |= _complex_order() | COMPLEX

_WRAPPED = {"add": "({U}){0} + ({U}){1}", "subtract": "({U}){0} - ({U}){1}", "negative": "-({U}){0}"}
_WRAPPED |= {"multiply": "1u * ({U}){0} * ({U}){1}", "square": "1u * ({U}){0} * ({U}){0}"}
_WRAPPED |= {"absolute": "{0} < 0 ? -({U}){0} : ({U}){0}"}
# ("1u" keeps narrow integers from being promoted to signed ones)


def _words(source: DType, dtype: DType, dialect: Dialect) -> dict[str, str]:
    single = "f" if source in (np.float32, np.complex64) else ""
    return {"C": dialect.struct(dtype), "s": dialect.suffix(source), "f": single}


def expression(name: str, args: Sequence[str], source: DType, dtype: DType, dialect: Dialect) -> str | None:
    """Return an operation on arguments of one dtype as a C expression; None if it is no single expression."""
    kind, words = dialect.type(dtype), _words(source, dtype, dialect)
    if source.kind == "i" and name in _WRAPPED and not dialect.wraps:
        return f"({kind})({_WRAPPED[name].format(*args, U=dialect.unsigned(source))})"
    template = TEMPLATES.get((name, source.kind))
    if template is None:
        return None
    text = template.format(*args, **words)
    if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 8):
        return f"({kind})({text})"  # back from int, to which C promotes
    return text if template[0].isalpha() else f"({text})"


def function(name: str, source: DType, dtype: DType, dialect: Dialect = C) -> tuple[str, str] | None:
    """Return name and text of the C function for an operation; None if an expression is enough."""
    body = next((text for (op, kinds), text in BODIES.items() if op == name and source.kind in kinds), None)
    template = TEMPLATES.get((name, source.kind))
    count = 3 if name == "where" else 2 if body or (template and "{1}" in template) else 1
    if name == "square" or (name, source.kind) in COMPLEX:
        count = 1
    if body is None:
        if template is None or (
            name != "where" and all(template.count(f"{{{i}}}") == 1 for i in range(count))
        ):
            return None
        body = f" return {template.format('a', 'b', 'c', **_words(source, dtype, dialect))}; "
        if source.kind == "i" and name in _WRAPPED and not dialect.wraps:
            body = f" return {expression(name, 'abc', source, dtype, dialect)}; "
    T = dialect.type(source)
    words = {
        "T": T,
        "U": dialect.unsigned(source) if source.kind in "iu" else T,
        "R": "float" if source == np.complex64 or source == np.float32 else "double",
        "C": dialect.struct(source) if source.kind == "c" else "C",
    }
    body = "".join(
        words.get(word, word)
        for word in re.findall(r"\w+|\W+", body.replace("S(", f"{dialect.suffix(source)}("))
    )
    types = [dialect.type(np.dtype(bool)) if name == "where" else T] + [T] * (count - 1)
    arguments = ", ".join(f"{kind} {letter}" for kind, letter in zip(types, "abc", strict=False))
    helper = f"{name}_{source.name}"
    head = f"{dialect.function}{dialect.type(dtype)} {helper}({arguments})"
    pragma = f"\n{dialect.contraction}\n" if dialect.contraction else ""
    return helper, f"{head} {{{pragma}{body}}}"


def checked(dtype: DType, dialect: Dialect = C) -> tuple[str, str]:
    """Return name and text of the C function of the operation ``checked``: it returns the value, and runs the
    dialect's ``failed_check`` if the condition is false."""
    helper, kind = f"checked_{dtype.name}", dialect.type(dtype)
    text = f"if (!a) {dialect.failed_check} return b;"
    truth = dialect.type(np.dtype(bool))
    return helper, f"{dialect.function}{kind} {helper}({truth} a, {kind} b) {{ {text} }}"


CALL = """/* NumPy's own loop, by the addresses of its code and data.  Some loops clear the flags. */
static void call(int64_t code, int64_t data, intptr_t count, void **rows, const intptr_t *steps) {
  int raised = fetestexcept(FE_ALL_EXCEPT);
  ((void (*)(void **, const intptr_t *, const intptr_t *, void *))code)(rows, &count, steps, (void *)data);
  feraiseexcept(raised);
}"""


def call_function(name: str, types: Sequence[DType], dtype: DType) -> tuple[str, str]:
    """Return name and text of the C function that calls a loop of NumPy for one element."""
    helper = "_".join([name, *(kind.name for kind in types), "by_numpy"])
    letters, ctype = "abc"[: len(types)], C.type
    arguments = "".join(f", {ctype(kind)} {letter}" for kind, letter in zip(types, letters, strict=True))
    rows = ", ".join(f"&{letter}" for letter in letters)
    steps = ", ".join(f"{STEPS.get((name, k), 0) * kind.itemsize}" for k, kind in enumerate((*types, dtype)))
    return helper, (
        f"static {ctype(dtype)} {helper}(int64_t code, int64_t data{arguments}) {{\n"
        f"  {ctype(dtype)} result;\n"
        f"  call(code, data, 1, (void *[]){{{rows}, &result}}, (intptr_t[]){{{steps}}});\n"
        "  return result;\n}"
    )


def affine(value: Affine) -> str:
    """Return the C expression of an affine integer."""
    text = ""
    for term in value.terms:
        factors = [name for name in (term.arg, term.var) if name]
        if abs(term.coef) != 1:
            factors.insert(0, str(abs(term.coef)))
        sign = ("-" if term.coef < 0 else "") if not text else " - " if term.coef < 0 else " + "
        text += sign + "*".join(factors)
    if value.const or not text:
        text += f" {'-' if value.const < 0 else '+'} {abs(value.const)}" if text else str(value.const)
    return text


def least(values: Sequence[Affine]) -> str:
    """Return the C expression of the smallest of several affine integers."""
    text = affine(values[-1])
    for one in map(affine, reversed(values[:-1])):
        text = f"({one} < {text} ? {one} : {text})"
    return text


def greatest(values: Sequence[Affine]) -> str:
    """Return the C expression of the largest of several affine integers."""
    text = affine(values[-1])
    for one in map(affine, reversed(values[:-1])):
        text = f"({one} > {text} ? {one} : {text})"
    return text


def literal(lit: Lit, dialect: Dialect = C) -> str:
    """Return the C text of a constant."""
    value, name = np.frombuffer(lit.bits, lit.dtype)[0], dialect.type(lit.dtype)
    if lit.dtype == np.float16 and not dialect.native_half:
        return f"({name})0x{int.from_bytes(lit.bits, sys.byteorder):x}"
    half = f"({dialect.type(np.dtype(np.float16))})" if lit.dtype.itemsize == 2 else ""
    if lit.dtype.kind == "c":
        size = lit.dtype.itemsize // 2
        parts = (Lit(bits, np.dtype(f"f{size}")) for bits in (lit.bits[:size], lit.bits[size:]))
        return f"{dialect.struct(lit.dtype)}{{{', '.join(literal(part, dialect) for part in parts)}}}"
    if lit.dtype.kind == "f" and not np.isfinite(value):
        wide = np.asarray(value, np.float32 if half else lit.dtype)
        return f"{half}bits_{wide.dtype.name}(0x{int.from_bytes(wide.tobytes(), sys.byteorder):x})"
    if lit.dtype.kind == "f":
        plain = float(value).is_integer() and abs(float(value)) < 1e6
        single = "f" if lit.dtype == np.float32 else ""
        text = half + (str(float(value)) if plain else float(value).hex()) + single
    elif lit.dtype == np.int64:
        text = dialect.int64_min if value == -(1 << 63) else dialect.int64.format(int(value))
    else:
        text = dialect.uint64.format(value) if lit.dtype == np.uint64 else f"({name}){int(value)}"
    return f"({text})" if value < 0 or text.startswith(("-", f"{half}-")) else text


def cast_width(dtype: DType) -> DType:
    """Return the integer dtype to which x86 first converts a float that is cast to ``dtype``."""
    if dtype.itemsize == 8:
        return dtype
    return np.dtype(np.int32 if dtype.kind == "i" or dtype.itemsize < 4 else np.int64)


def checked_conversion(source: DType, dtype: DType, dialect: Dialect) -> tuple[str, str]:
    """Return name and text of the C function that converts float32 or float64 to a 32- or 64-bit integer as
    x86 does: a number out of range becomes the least integer.  The one for uint64 calls the one for int64."""
    helper, kind, T = f"to_{dtype.name}_{source.name}", dialect.type(dtype), dialect.type(source)
    bits = 8 * dtype.itemsize
    top = f"({T}){float(1 << (bits - 1))}"
    if dtype.kind == "u":  # as a signed number, less 2**63 where that does not hold it
        signed, half = f"to_int64_{source.name}", dialect.uint64.format(1 << 63)
        body = f"a >= {top} ? ({kind}){signed}(a - {top}) ^ {half} : ({kind}){signed}(a)"
        return helper, f"{dialect.function}{kind} {helper}({T} a) {{ return {body}; }}"
    low = dialect.int64_min if bits == 64 else f"(-{(1 << (bits - 1)) - 1} - 1)"
    body = f"(a >= -{top}) & (a < {top}) ? ({kind})a : {low}"
    return helper, f"{dialect.function}{kind} {helper}({T} a) {{ return {body}; }}"


def cast(text: str, source: DType, dtype: DType, dialect: Dialect = C) -> str:
    """Return ``text``, a value of dtype ``source``, converted to ``dtype`` as NumPy's unsafe casting does."""
    name = dialect.type(dtype)
    if source == dtype:
        return text
    if source.kind == "c":
        if dtype.kind == "c":
            return f"{dialect.struct(dtype)}{{{text}.re, {text}.im}}"
        if dtype.kind == "b":
            return f"(({text}.re != 0) | ({text}.im != 0))"
        return cast(f"{text}.re", np.dtype(f"f{source.itemsize // 2}"), dtype, dialect)
    if source == np.float16 and not dialect.native_half:
        return cast(dialect.widened_half(text), np.dtype(np.float32), dtype, dialect)
    if dtype.kind == "c":
        return f"{dialect.struct(dtype)}{{{text}, 0}}"
    if dtype.kind == "b":
        return f"({text} != 0)"
    if dtype == np.float16:
        single = source.kind != "f"  # NumPy rounds integers twice
        return dialect.rounded_half(f"(float){text}" if single else text, source)
    if source.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 8:
        # Out of range, C leaves the result open: say what the machine instruction gives.
        return f"({name})({dialect.type(cast_width(dtype))}){text}"
    return f"({name}){text}"
