"""The builder of LLVM text: straight-line instructions on typed values.

A value is the name of an LLVM value or a literal; a complex value is a pair of them.  In registers a bool
is ``i1``, in memory ``i8``.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from dcarray.lowering.cpu.llvm.object_code.engine import Machine
from dcarray.lowering.cpu.llvm.types import BITS as BITS

DType = np.dtype[Any]
Value = Any  # str, or (str, str) for a complex value

_FLOATS = {2: "half", 4: "float", 8: "double"}
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


def part(dtype: DType) -> DType:
    """Return the dtype of the real part of a complex dtype."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def ty(dtype: DType) -> str:
    """Return the LLVM type of a value of a real dtype in a register."""
    if dtype.kind == "b":
        return "i1"
    if dtype.kind in "iu":
        return f"i{8 * dtype.itemsize}"
    return _FLOATS[dtype.itemsize]


def bits_of(value: float) -> str:
    """Return the bits of a double, as an integer constant."""
    return str(int(np.float64(value).view(np.int64)))


def real(value: float, t: str) -> str:
    """Return the literal of a floating-point constant."""
    if t == "half":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if t == "float":
        value = float(np.float32(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Builder:
    """The instructions of one function, and the declarations that the module needs for them.

    ``quiet`` demands comparisons that raise no floating-point flag for NaN, which cost more.  Names are
    numbered from ``first`` on.
    """

    def __init__(self, machine: Machine, quiet: bool = True, first: int = 0) -> None:
        self.machine = machine
        self.quiet = quiet
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.soft_used = False
        self.calls = 0  # of vector functions
        self.group = ""  # the current metadata of memory accesses
        self.count = first

    def name(self) -> str:
        self.count += 1
        return f"%x.{self.count}"

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        """Branch to a basic block."""
        self.line(f"br label %{label}")

    def fall_into(self, label: str) -> None:
        """End a basic block and begin the one that follows it."""
        self.jump(label)
        self.begin(label)

    def fork(self, cond: str, yes: str, no: str, note: str = "") -> None:
        """Branch on a condition."""
        self.line(f"br i1 {cond}, label %{yes}, label %{no}{note}")

    def op(self, text: str) -> str:
        """Emit an instruction; return its result."""
        result = self.name()
        self.lines.append(f"  {result} = {text}")
        return result

    def declare(self, name: str, text: str) -> None:
        """Add ``text`` to the module, which declares or defines ``name``."""
        self.declarations[name] = text

    def declare_vectors(self, lanes: int, t: str, **arity: int) -> None:
        """Declare intrinsics on vectors, given by name with their numbers of arguments."""
        vector, suffix = f"<{lanes} x {t}>", f"v{lanes}{_SUFFIX.get(t, t)}"
        for name, count in arity.items():
            full = f"llvm.{name}.{suffix}"
            self.declare(full, f"declare {vector} @{full}({', '.join([vector] * count)})")

    def call(self, t: str, name: str, *args: tuple[str, str], attributes: str = "") -> str:
        """Call a function, declared as free of side effects."""
        types = ", ".join(a for a, _ in args)
        self.declarations.setdefault(
            name, f"declare {t} @{name}({types})" + ("" if name.startswith("llvm.") else " #pure")
        )
        values = ", ".join(f"{a} {v}" for a, v in args)
        return self.op(f"call {t} @{name}({values}){attributes}")

    def intrinsic(self, name: str, t: str, *args: str, extra: tuple[tuple[str, str], ...] = ()) -> str:
        """Call ``llvm.name.<type>`` on arguments that all have the type of the result."""
        kind = _SUFFIX.get(t, t)
        return self.call(t, f"llvm.{name}.{kind}", *((t, a) for a in args), *extra)

    # ---- logic --------------------------------------------------------------------------------------
    def select(self, cond: str, t: str, yes: str, no: str) -> str:
        # "unpredictable" keeps both arms evaluated: no branch around an operation that may raise a flag.
        return self.op(f"select i1 {cond}, {t} {yes}, {t} {no}, !unpredictable !0")

    def both(self, a: str, b: str) -> str:
        return self.op(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.op(f"or i1 {a}, {b}")

    def differ(self, a: str, b: str) -> str:
        return self.op(f"xor i1 {a}, {b}")

    def inverse(self, a: str) -> str:
        return self.op(f"xor i1 {a}, true")

    def icmp(self, how: str, t: str, a: str, b: str) -> str:
        return self.op(f"icmp {how} {t} {a}, {b}")

    # ---- floating point -----------------------------------------------------------------------------
    def fcmp(self, how: str, t: str, a: str, b: str) -> str:
        """Emit a comparison; return its result. oeq, une, uno and ord raise no flag for a quiet NaN; olt,
        ole, ogt and oge do in x86 vectors, unlike in NumPy, so NaNs are replaced before them if ``quiet``."""
        if how in ("olt", "ole", "ogt", "oge") and self.quiet:
            known = self.op(f"fcmp ord {t} {a}, {b}")
            low, high = real(0.0, t), real(1.0, t)
            a = self.select(known, t, a, high if how in ("ole", "olt") else low)
            b = self.select(known, t, b, low if how in ("ole", "olt") else high)
        return self.op(f"fcmp {how} {t} {a}, {b}")

    def fadd(self, t: str, x: str, y: str) -> str:
        return self.op(f"fadd {t} {x}, {y}")

    def fsub(self, t: str, x: str, y: str) -> str:
        return self.op(f"fsub {t} {x}, {y}")

    def fmul(self, t: str, x: str, y: str) -> str:
        return self.op(f"fmul {t} {x}, {y}")

    def fdiv(self, t: str, x: str, y: str) -> str:
        return self.op(f"fdiv {t} {x}, {y}")

    def fabs(self, t: str, a: str) -> str:
        return self.intrinsic("fabs", t, a)

    def one(self, t: str) -> str:
        """Return 1.0 as a value unknown to LLVM, so that a division by ``select(c, x, one)`` stays as it is;
        with a constant, LLVM would divide by ``x`` everywhere and select afterwards."""
        return self._unknown("one", 1.0, t)

    def zero(self, t: str) -> str:
        """Return 0.0 as a value unknown to LLVM, which would else compare a root's operand instead."""
        return self._unknown("zero", 0.0, t)

    def _unknown(self, what: str, value: float, t: str) -> str:
        name = f"dc_{what}_{t}"
        self.declare(name, f"@{name} = global {t} {real(value, t)}")
        return self.op(f"load {t}, ptr @{name}{self.group}")

    def truth(self, t: str, a: str) -> str:
        return self.op(f"fcmp une {t} {a}, {self.zero(t)}")

    def isnan(self, t: str, a: str) -> str:
        return self.op(f"fcmp uno {t} {a}, {a}")

    def fma(self, t: str, a: str, b: str, c: str) -> str:
        return self.intrinsic("fma", t, a, b, c)

    def fneg(self, t: str, a: str) -> str:
        return self.op(f"fneg {t} {a}")

    def bits(self, t: str, a: str) -> str:
        return self.op(f"bitcast {t} {a} to i{BITS[t]}")

    def negative_bit(self, t: str, a: str) -> str:
        """Emit the test whether the sign bit of a value is set; return the result."""
        return self.icmp("slt", f"i{BITS[t]}", self.bits(t, a), "0")

    # ---- flags --------------------------------------------------------------------------------------
    def soft(self, cond: str, flag: int) -> None:
        """Emit code that adds a floating-point flag to the function's result if ``cond`` holds."""
        self.soft_used = True
        old = self.op("load i32, ptr %soft")
        new = self.op(f"select i1 {cond}, i32 {flag}, i32 0")
        self.line(f"store i32 {self.op(f'or i32 {old}, {new}')}, ptr %soft")
