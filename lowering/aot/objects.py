"""Kernels of a library compiled to object code by LLVM; kernels that LLVM refuses stay C text."""

from __future__ import annotations

import platform
import re
from dataclasses import replace

from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Kernel
from dcarray.lowering.runtime.stopping import STOP

from . import build

_PHASE = re.compile(r"^define i32 @phase(\d+)\(", re.M)
_NEVER = "@dc_never = internal constant i32 0\n@dc_stop = internal constant ptr @dc_never"
_HELPER = re.compile(r"^define (?!internal |hidden )", re.M)


class Objects:
    """The object code of a library's kernels for a processor: "native", or a level of x86-64."""

    def __init__(self, level: str) -> None:
        self._level, self._machine = level, machine(level)
        if self._machine.vector_math is not None and not build.has_library("mvec"):
            self._machine = replace(self._machine, vector_math=None)
        self.code: list[bytes] = []

    def takes(self, kernel: Kernel, prefix: str) -> bool:
        """Compile a kernel and return True, or False if LLVM cannot; its phases' names get ``prefix``."""
        try:
            text = _PHASE.sub(rf"define hidden i32 @{prefix}phase\1(", emit(kernel, self._machine))
            # helpers of one name are the same in all objects
            text = text.replace(STOP, _NEVER)
            text = _HELPER.sub("define weak_odr hidden ", text)
            self.code.append(engine.library_object(text, self._level, self._machine))
        except (Unsupported, RuntimeError):
            return False
        return True


def machine(level: str) -> engine.Machine:
    """Return the description of this processor ("native"), or of one with just the features of a level."""
    if level == "native":
        return engine.machine()
    number = int(level.removeprefix("x86-64").removeprefix("-v") or 1)
    vectors = ("d", 256) if number >= 3 and engine.machine().vector_math else None
    x86 = platform.machine() in ("x86_64", "AMD64")
    return engine.Machine(
        vector_bits={1: 128, 2: 128, 3: 256, 4: 512}[number],
        vector_math=("e", 512) if number == 4 and vectors else vectors,
        half=number >= 3,
        masks=number == 4,
        nontemporal=x86,
    )
