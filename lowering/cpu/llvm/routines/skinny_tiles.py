"""The register-tiled micro-kernels of products with skinny matrices, as LLVM text."""

from __future__ import annotations

from dcarray.ir.records import record

from .routine import fill_template

__all__ = ["ABREAST", "Vectors", "tiles"]

ABREAST = 3
"""Vectors of columns, or rows of the large matrix, that are multiplied side by side."""

_COLUMNS = """
define internal void @down$ROWS(ptr %w, i64 %ldw, i64 %count, ptr %x, i64 %ldx, ptr %part, i1 %fresh) #9 {
entry:
  $BEGIN
  br label %term
term:
  %q = phi i64 [ 0, %entry ], [ %q1, %term ]
  %wp = phi ptr [ %w, %entry ], [ %wn, %term ]
  %xp = phi ptr [ %x, %entry ], [ %xn, %term ]
  $SUMS
  %q1 = add i64 %q, 1
  %wn = getelementptr $R, ptr %wp, i64 %ldw
  %xn = getelementptr $R, ptr %xp, i64 %ldx
  $TERMS
  %more = icmp slt i64 %q1, %count
  br i1 %more, label %term, label %summed
summed:
  $STORES
  ret void
}
"""

_LINES = """
define internal void @along$ROWSx$BESIDE(ptr %w, i64 %ldw, i64 %count, ptr %x, i64 %ldx, ptr %sums) #9 {
entry:
  %next = mul i64 %ldw, $BESIDE
  br label %term
term:
  %q = phi i64 [ 0, %entry ], [ %q1, %whole ]
  $SUMS
  %q1 = add i64 %q, $LANES
  $PLACES
  %full = icmp sle i64 %q1, %count
  br i1 %full, label %whole, label %rest
whole:
  $TERMS
  br label %term
rest:
  %left = sub i64 %count, %q
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %last, label %summed
last:
  %ends = insertelement <$LANES x i64> poison, i64 %left, i64 0
  %end = shufflevector <$LANES x i64> %ends, <$LANES x i64> poison, <$LANES x i32> zeroinitializer
  %mask = icmp slt <$LANES x i64> <$COUNTED>, %end
  $ENDS
  br label %summed
summed:
  $STORES
  ret void
}
"""


@record(frozen=True, slots=True)
class Vectors:
    """A vector type: the number of lanes, and the LLVM type ``real`` and the bytes ``size`` of each."""

    lanes: int
    real: str
    size: int

    @property
    def type(self) -> str:
        return f"<{self.lanes} x {self.real}>"

    @property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    @property
    def mangled(self) -> str:
        """The vector type as it appears in the names of intrinsics."""
        return f"v{self.lanes}f{8 * self.size}"


def tiles(v: Vectors, most: int) -> list[str]:
    """Return all micro-kernels, for 4 and for ``most`` rows of the skinny matrix, and their declarations."""
    heights = sorted({4, most})
    return [
        f"declare {v.type} @llvm.masked.load.{v.mangled}.p0(ptr, i32, {v.mask}, {v.type})",
        f"declare {v.real} @llvm.vector.reduce.fadd.{v.mangled}({v.real}, {v.type})",
        *[_columns(v, height) for height in heights],
        *[_lines(v, height, beside, most) for height in heights for beside in (1, ABREAST)],
    ]


def _columns(v: Vectors, height: int) -> str:
    """Return the micro-kernel that sums along columns: some rows of a tile of the large matrix times
    ``height`` rows of the skinny one."""
    cells = [(i, c) for i in range(height) for c in range(ABREAST)]
    begin, sums, terms, stores = [], [], [], []
    for i, c in cells:
        name = f"{i}.{c}"
        begin += [
            f"%p{name} = getelementptr {v.real}, ptr %part, i64 {(i * ABREAST + c) * v.lanes}",
            f"%l{name} = load {v.type}, ptr %p{name}, align {v.size}",
            f"%b{name} = select i1 %fresh, {v.type} zeroinitializer, {v.type} %l{name}",
        ]
        sums.append(f"%a{name} = phi {v.type} [ %b{name}, %entry ], [ %n{name}, %term ]")
        stores.append(f"store {v.type} %n{name}, ptr %p{name}, align {v.size}")
    for c in range(ABREAST):
        terms += [
            f"%w{c}.p = getelementptr {v.real}, ptr %wp, i64 {c * v.lanes}",
            f"%w{c} = load {v.type}, ptr %w{c}.p, align {v.size}",
            f"%f{c} = getelementptr {v.real}, ptr %wp, i64 {(c + ABREAST) * v.lanes}",
            f"call void @llvm.prefetch.p0(ptr %f{c}, i32 0, i32 3, i32 1)",
        ]
    for i in range(height):
        terms += [
            f"%x{i}.p = getelementptr {v.real}, ptr %xp, i64 {i}",
            f"%x{i}.s = load {v.real}, ptr %x{i}.p, align {v.size}",
            f"%x{i}.i = insertelement {v.type} poison, {v.real} %x{i}.s, i64 0",
            f"%x{i} = shufflevector {v.type} %x{i}.i, {v.type} poison, <{v.lanes} x i32> zeroinitializer",
        ]
        terms += [_multiply_add(f"{i}.{c}", f"{i}", f"{c}", v) for c in range(ABREAST)]
    return _fill(_COLUMNS, ROWS=height, BEGIN=begin, SUMS=sums, TERMS=terms, STORES=stores)


def _lines(v: Vectors, height: int, beside: int, most: int) -> str:
    """Return the micro-kernel that sums along rows: ``beside`` rows of the large matrix times ``height`` rows
    of the skinny one."""
    sums, places, terms, ends, stores = [], [], [], [], []
    for g in range(beside):
        places += _place("w", g, v)
        terms += [
            f"%w{g} = load {v.type}, ptr %w{g}.p, align {v.size}",
            f"%f{g} = getelementptr {v.real}, ptr %w{g}.p, i64 %next",
            f"call void @llvm.prefetch.p0(ptr %f{g}, i32 0, i32 3, i32 1)",
        ]
        given = f"ptr %w{g}.p, i32 {v.size}, {v.mask} %mask, {v.type} zeroinitializer"
        ends.append(f"%ew{g} = call {v.type} @llvm.masked.load.{v.mangled}.p0({given})")
    for i in range(height):
        places += _place("x", i, v)
        terms.append(f"%x{i} = load {v.type}, ptr %x{i}.p, align {v.size}")
        ends.append(f"%ex{i} = load {v.type}, ptr %x{i}.p, align {v.size}")
        for g in range(beside):
            name = f"{i}.{g}"
            sums.append(f"%a{name} = phi {v.type} [ zeroinitializer, %entry ], [ %n{name}, %whole ]")
            terms.append(_multiply_add(name, f"{i}", f"{g}", v))
            ends.append(_multiply_add(name, f"{i}", f"{g}", v, "e"))
            stores.append(f"%s{name} = phi {v.type} [ %a{name}, %rest ], [ %en{name}, %last ]")
    for i in range(height):
        for g in range(beside):
            name, at = f"{i}.{g}", g * most + i
            given = f"{v.real} -0.0, {v.type} %s{name}"
            stores += [
                f"%t{name} = call reassoc {v.real} @llvm.vector.reduce.fadd.{v.mangled}({given})",
                f"%to{name} = getelementptr {v.real}, ptr %sums, i64 {at}",
                f"store {v.real} %t{name}, ptr %to{name}, align {v.size}",
            ]
    return _fill(
        _LINES, ROWS=height, BESIDE=beside, SUMS=sums, PLACES=places, TERMS=terms, ENDS=ends, STORES=stores
    )


def _place(matrix: str, row: int, v: Vectors) -> list[str]:
    """Return the instructions that compute the address of a row's elements from index ``%q`` on."""
    name = f"{matrix}{row}"
    return [
        f"%{name}.o = mul i64 %ld{matrix}, {row}",
        f"%{name}.f = getelementptr {v.real}, ptr %{matrix}, i64 %{name}.o",
        f"%{name}.p = getelementptr {v.real}, ptr %{name}.f, i64 %q",
    ]


def _multiply_add(name: str, row: str, column: str, v: Vectors, kind: str = "") -> str:
    """Return the text of a multiply-add, which LLVM may contract to one instruction."""
    return (
        f"%{kind}m{name} = fmul contract {v.type} %{kind}x{row}, %{kind}w{column}\n  "
        f"%{kind}n{name} = fadd contract {v.type} %a{name}, %{kind}m{name}"
    )


def _fill(text: str, **words: object) -> str:
    """Return the text of a template whose words may be lists of lines."""
    given = {word: "\n  ".join(w) if isinstance(w, list) else w for word, w in words.items()}
    return fill_template(text, **given)
