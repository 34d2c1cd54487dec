"""Object code linked without LLVM behaves as with LLVM's linker."""

import ctypes
import platform
import struct
import subprocess
import sys

import pytest

from dcarray.lowering.cpu import machine_fingerprint
from dcarray.lowering.cpu.llvm.object_code import elf_linker, engine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="LLVM links there"
)
LIBRARIES = ("libm.so.6", "libmvec.so.1")
TEXT = """
@table = internal constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
declare double @sinh(double)
define double @both(double %x, i64 %k) {
  %s = call double @sinh(double %x)
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %k
  %t = load double, ptr %p
  %r = fadd double %s, %t
  %q = call double @other(double %r)
  ret double %q
}
define double @other(double %x) noinline {
  %r = fmul double %x, 0.125
  ret double %r
}
"""


def linked(code: bytes, *names: str) -> tuple[tuple[int, ...], object]:
    return elf_linker.link(code, names, LIBRARIES)


def test_constants_calls_and_functions_of_libraries() -> None:
    code = engine.compile_object(TEXT)
    (both, other), memory = linked(code, "both", "other")
    import math

    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(both)
    assert [f(0.5, k) for k in range(4)] == [(math.sinh(0.5) + 2.0**k) * 0.125 for k in range(4)]
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(other)(8.0) == 1.0
    assert memory is not None


@pytest.mark.parametrize("text", [
    TEXT.replace("@sinh", "@no_such_function_anywhere"),
    "@g = thread_local global i64 3\ndefine i64 @both() {\n  %x = load i64, ptr @g\n  ret i64 %x\n}",
])  # fmt: skip
def test_what_is_left_to_llvm(text: str) -> None:
    module = engine._optimise(text)
    code = bytes(engine._target_machine().emit_object(module))
    with pytest.raises(elf_linker.Unlinkable):
        linked(code, "both")


def test_data_that_is_written_lies_apart_from_code() -> None:
    text = (
        TEXT
        + """
@count = global i64 3
define i64 @next() {
  %x = load volatile i64, ptr @count
  %y = add i64 %x, 1
  store volatile i64 %y, ptr @count
  ret i64 %x
}
"""
    )
    (both, after), memory = linked(engine.compile_object(text), "both", "next")
    f = ctypes.CFUNCTYPE(ctypes.c_int64)(after)
    assert [f(), f(), f()] == [3, 4, 5] and memory is not None
    rights = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, right, *_ = line.split()
            first, last = (int(word, 16) for word in span.split("-"))
            rights |= {name: right for name, at in (("code", both), ("code", after)) if first <= at < last}
    assert rights["code"].startswith("r-x")


def test_names_that_are_not_there() -> None:
    with pytest.raises(elf_linker.Unlinkable, match="nothing_like_it"):
        linked(engine.compile_object(TEXT), "nothing_like_it")


def test_code_that_is_cut_short_or_changed_is_refused_or_linked() -> None:
    code = engine.compile_object(TEXT)
    for length in range(0, len(code), 7):
        with pytest.raises(elf_linker.Unlinkable):
            linked(code[:length], "both")
    for at in range(0, len(code) - 8, 5):  # it does not run: only that nothing else is raised
        changed = code[:at] + b"\xff" * 8 + code[at + 8 :]
        try:
            linked(changed, "both")
        except elf_linker.Unlinkable:
            continue


def test_unknown_relocations_are_refused() -> None:
    code = engine.compile_object(TEXT)
    wanted = next(s for s in elf_linker._sections(code) if s.type == elf_linker._RELA and s.size)
    at = wanted.offset + 8
    (info,) = struct.unpack_from("<Q", code, at)
    changed = code[:at] + struct.pack("<Q", info & ~0xFFFFFFFF | 9) + code[at + 8 :]  # GOTPCREL
    with pytest.raises(elf_linker.Unlinkable, match="type 9"):
        linked(changed, "both")


def test_a_program_that_runs_plans_has_no_llvm() -> None:
    program = """
import sys, numpy as np, dcarray as dc
x = dc.asarray(np.arange(1e6))
for k in range(500):
    y = np.sqrt(x * x + 1.0) + np.sin(x)
    dc.evaluate(y)
    if k % 20 == 19:
        dc.wait()
assert dc.report().kernels and not dc.report().fallbacks, dc.report()
print("llvmlite.binding" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=None)
    assert done.stdout.split() == ["False"], done.stdout + done.stderr


def test_a_machine_has_one_fingerprint() -> None:
    assert (
        len(machine_fingerprint.machine_fingerprint()) == 16
        and machine_fingerprint.machine_fingerprint() == machine_fingerprint.machine_fingerprint.__wrapped__()
    )
    assert "flags" in machine_fingerprint._processor()
