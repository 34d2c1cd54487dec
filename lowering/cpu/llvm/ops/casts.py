"""Conversions between dtypes, as ``astype(casting="unsafe")`` does them."""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.text.builder import Builder, DType, Value, part, real, ty
from dcarray.lowering.errors import Unsupported


def _to_integer(b: Builder, t: str, x: str, to: DType) -> str:
    """Emit the conversion of a float to an integer. NaN and values out of range give what the processor's
    instruction gives, like NumPy's compiled C casts; ``freeze`` keeps LLVM from assuming that they do not
    occur."""
    width = 8 * to.itemsize
    out = f"i{width}"

    def signed(value: str, bits: int) -> str:
        return b.op(f"freeze i{bits} {b.op(f'fptosi {t} {value} to i{bits}')}")

    if width < 32:
        return b.op(f"trunc i32 {signed(x, 32)} to {out}")
    if to.kind == "i":
        return signed(x, width)
    half = real(2.0 ** (width - 1), t)
    big = b.op(f"fcmp oge {t} {x}, {half}")
    low = b.fsub(t, x, b.select(big, t, half, real(0.0, t)))
    # 0x80... is the result for what does not fit; it becomes 0 when the value was too large.
    top = b.op(f"select i1 {big}, {out} {-(1 << (width - 1))}, {out} 0")
    return b.op(f"xor {out} {signed(low, width)}, {top}")


def _half(b: Builder, instruction: str) -> str:
    if not b.machine.half:
        raise Unsupported("this processor has no float16 conversion")
    return b.op(instruction)


def narrow(b: Builder, x: str) -> str:
    """Emit the conversion of a float to a half."""
    return _half(b, f"fptrunc float {x} to half")


def widen(b: Builder, x: str) -> str:
    """Emit the conversion of a half to a float."""
    return _half(b, f"fpext half {x} to float")


def _double_to_half(b: Builder, x: str) -> str:
    """Emit the conversion of a double to a half, through a float that is rounded to odd, so that the result
    is the same as with a single rounding."""
    near = b.op(f"fptrunc double {x} to float")
    back = b.op(f"fpext float {near} to double")
    exact = b.op(f"fcmp ueq double {back}, {x}")
    above = b.fcmp("ogt", "double", b.intrinsic("fabs", "double", back), b.intrinsic("fabs", "double", x))
    bits = b.bits("float", near)
    down = b.op(f"sub i32 {bits}, {b.op(f'zext i1 {above} to i32')}")
    odd = b.op(f"or i32 {down}, 1")
    chosen = b.op(f"select i1 {exact}, i32 {bits}, i32 {odd}")
    return narrow(b, b.op(f"bitcast i32 {chosen} to float"))


def _real(b: Builder, x: str, frm: DType, to: DType) -> str:
    source, target = ty(frm), ty(to)
    if frm == to:
        return x
    if to.kind == "b":
        if frm.kind in "iu":
            return b.icmp("ne", source, x, "0")
        return b.truth(source, x)
    if frm.kind in "biu":
        unsigned = frm.kind != "i"
        if to.kind in "iu":
            if to.itemsize == frm.itemsize and frm.kind != "b":
                return x
            if to.itemsize < frm.itemsize:
                return b.op(f"trunc {source} {x} to {target}")
            return b.op(f"{'zext' if unsigned else 'sext'} {source} {x} to {target}")
        how = "uitofp" if unsigned else "sitofp"
        if target == "half":
            return narrow(b, b.op(f"{how} {source} {x} to float"))
        return b.op(f"{how} {source} {x} to {target}")
    if to.kind in "iu":
        if source == "half":
            return _to_integer(b, "float", widen(b, x), to)
        return _to_integer(b, source, x, to)
    if source == "half":
        wide = widen(b, x)
        return wide if target == "float" else b.op(f"fpext float {wide} to double")
    if target == "half":
        return _double_to_half(b, x) if source == "double" else narrow(b, x)
    return b.op(f"{'fpext' if target == 'double' else 'fptrunc'} {source} {x} to {target}")


def cast(b: Builder, x: Value, frm: DType, to: DType) -> Value:
    """Emit the conversion of ``x`` from dtype ``frm`` to dtype ``to``; return the result."""
    if frm == to:
        return x
    if frm.kind == "c":
        if to.kind == "c":
            return _real(b, x[0], part(frm), part(to)), _real(b, x[1], part(frm), part(to))
        if to.kind == "b":
            return b.either(*(_real(b, p, part(frm), to) for p in x))
        return _real(b, x[0], part(frm), to)
    if to.kind == "c":
        return _real(b, x, frm, part(to)), real(0.0, ty(part(to)))
    return _real(b, x, frm, to)
