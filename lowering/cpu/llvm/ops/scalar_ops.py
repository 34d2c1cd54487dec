"""The dispatch of an operation of ``ir.ops`` on scalars to the module for its dtype."""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.text.builder import Builder, DType, Value, part, ty
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.flags import INVALID

from .casts import cast
from .complex_ops import complex_op
from .float_ops import floating
from .integer_ops import boolean, integer


def apply(b: Builder, name: str, args: tuple[Value, ...], types: tuple[DType, ...], out: DType) -> Value:
    """Emit ``name(*args)`` for arguments of ``types``; return the result, of dtype ``out``. Raises
    `Unsupported` if there is no exact lowering."""
    if name == "cast":
        return cast(b, args[0], types[0], out)
    if name == "complex":
        return args[0], args[1]
    if name == "where":
        if out.kind == "c":
            t = ty(part(out))
            return tuple(b.select(args[0], t, x, y) for x, y in zip(args[1], args[2], strict=True))
        return b.select(args[0], ty(out), args[1], args[2])
    if name == "checked":
        b.soft(b.inverse(args[0]), INVALID)
        return args[1]
    kind = types[0].kind
    if kind == "b":
        return boolean(b, name, args)
    if kind in "iu":
        return integer(b, name, args, types)
    if kind == "f":
        return floating(b, name, args, types, out)
    if kind == "c":
        return complex_op(b, name, args, types)
    raise Unsupported(f"{name} of {types[0].name}")
