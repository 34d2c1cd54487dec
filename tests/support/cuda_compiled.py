"""Every kernel of blocks that a test makes, compiled as CUDA C++ for a GPU: what it takes, what it spills."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import kernel_machine

from dcarray.lowering.c_family.device_kernels import DevicePrinter, emit
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.gpu.cuda import nvrtc
from dcarray.lowering.gpu.cuda.dialect import CUDA
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.walk import walk_statements

ARCHITECTURE = "sm_90"
PROPERTY = "cuda kernels"
FEW = 64
"""Bytes that a thread of a kernel with loops may spill, stores and loads together."""
_compiled: set[bytes] = set()


@contextmanager
def noted() -> Iterator[list[k.Kernel]]:
    """Note the kernels that are printed for a device, or run by the kernel machine."""
    found: list[k.Kernel] = []
    owners: tuple[Any, ...] = DevicePrinter, kernel_machine.Machine
    kept = [owner.__init__ for owner in owners]

    def noting(init: Any) -> Any:
        def __init__(self: Any, kernel: k.Kernel, *rest: Any, **named: Any) -> None:
            if kernel.phases and all(phase.threads for phase in kernel.phases):
                found.append(kernel)
            init(self, kernel, *rest, **named)

        return __init__

    for owner, init in zip(owners, kept, strict=True):
        owner.__init__ = noting(init)
    try:
        yield found
    finally:
        for owner, init in zip(owners, kept, strict=True):
            owner.__init__ = init


def is_simple(phase: k.Phase) -> bool:
    """Whether threads run straight through, without loops or arrays of their own."""
    return not any(
        isinstance(one, k.For | k.Repeat) or (isinstance(one, k.Stack) and one.per_thread)
        for one in walk_statements(phase.body)
    )


def compiled(kernels: list[k.Kernel]) -> list[tuple[int, int, int]]:
    """Compile those that have not been compiled yet, if there is NVRTC; give registers, bytes spilled and of
    shared memory of each function."""
    found: list[tuple[int, int, int]] = []
    if nvrtc.unavailable():
        return found
    for kernel in kernels:
        try:
            source = emit(kernel, CUDA)
        except Unsupported:
            continue
        key = hashlib.sha256(source.encode()).digest()
        if key in _compiled:
            continue
        _compiled.add(key)
        code = nvrtc.compile_source(source, ARCHITECTURE, narrow=bool(key[0] % 8))
        assert len(code.functions) == len(kernel.phases)
        for phase, used in zip(kernel.phases, code.functions.values(), strict=True):
            spilled = used.spill_stores + used.spill_loads
            allowed = 0 if is_simple(phase) else FEW
            assert spilled <= allowed, f"{spilled} bytes spilled:\n{source}"
            found.append((used.registers, spilled, used.shared))
    return found


def summary(functions: Iterable[tuple[int, int, int]]) -> str:
    """What all of them take, in a line."""
    registers, spilled, shared = zip(*functions, strict=True)
    half, most, spills = sorted(registers)[len(registers) // 2], max(registers), sum(map(bool, spilled))
    return (
        f"{len(registers)} CUDA functions, {ARCHITECTURE}: at most {most} registers, half of them {half}; "
        f"{spills} with spills, of at most {max(spilled)} bytes; at most {max(shared)} bytes shared"
    )
