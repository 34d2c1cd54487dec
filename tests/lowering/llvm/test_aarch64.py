"""Kernels as object code for 64-bit ARM, which is inspected: it is not run here."""

import struct
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code.engine import Machine
from dcarray.lowering.kernel import nodes as k

TRIPLE = "aarch64-unknown-linux-gnu"
AARCH64 = 183  # of ELF's numbers of processors


@pytest.fixture(scope="module")
def arm() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu="generic", opt=2, reloc="pic")


def _module(char: str, arm: Any) -> Any:
    """``out[i] = x[i] * y[i] + sqrt(x[i])``, optimised."""
    dtype = np.dtype(char)
    i = k.affine(0, k.Term(1, None, "i"))
    x, y = (k.Elem(name, i, dtype) for name in "xy")
    value = k.Op("add", (k.Op("multiply", (x, y), dtype), k.Op("sqrt", (x,), dtype)), dtype)
    phase = k.Phase("i", k.affine(0, k.Term(1, "n")), "vector", (k.Store("out", i, value),), ())
    buffers = tuple(k.Buffer(name, dtype, access) for name, access in (("x", "r"), ("y", "r"), ("out", "w")))
    module = llvm.parse_assembly(emit(k.Kernel(buffers, ("n",), (phase,)), Machine(half=True)))
    module.triple, module.data_layout = TRIPLE, str(arm.target_data)
    module.verify()
    builder = llvm.create_pass_builder(arm, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return module


@pytest.mark.parametrize(("char", "lanes"), [("d", "2d"), ("f", "4s")])
def test_a_kernel_in_vectors_with_nothing_contracted(char: str, lanes: str, arm: Any) -> None:
    module = _module(char, arm)
    code = arm.emit_object(module)
    assert code[:4] == b"\x7fELF" and struct.unpack_from("<H", code, 18) == (AARCH64,)
    text = arm.emit_assembly(module)
    for instruction in ("fmul", "fadd", "fsqrt"):
        assert f"{instruction}\tv" in text and f".{lanes}" in text, instruction
    assert "fmla" not in text and "fmadd" not in text and "x86" not in text
