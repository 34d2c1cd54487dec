"""Routines: handwritten LLVM text that is cached, compiled and launched on threads like a kernel."""

from __future__ import annotations

import re

import numpy as np

from dcarray.ir.records import record
from dcarray.lowering.cpu.llvm.launches import ObjectCompiler
from dcarray.lowering.cpu.llvm.text.addresses import expand_addresses
from dcarray.lowering.kernel.compiler import LoadedKernel
from dcarray.lowering.kernel.nodes import Kernel

__all__ = ["NO_KERNEL", "Routine", "fill_template", "scalar", "words_of"]

NO_KERNEL = Kernel((), (), ())


@record(frozen=True, slots=True)
class Routine(ObjectCompiler):
    """A routine, as a `dcarray.lowering.kernel.compiler.Compiler` whose only kernel is the routine."""

    name: str  # different for each text
    text: str  # it defines ``phase0``, ``phase1``, ...
    phases: int
    arguments: int
    mask: int = 0  # the floating-point flags that are reported

    @property
    def key(self) -> str:
        """The routine's name; see `Compiler`."""
        return self.name

    def emit(self, kernel: Kernel) -> str:
        """Return the LLVM text."""
        return self.text

    def load(self, kernel: Kernel, code: bytes) -> LoadedKernel:
        """Link object code and make it callable."""
        return self.linked(code, self.phases, self.arguments, self.mask)


_TYPES = {"f": "i32", "d": "i64", "F": "i64", "D": "<2 x i64>"}


def words_of(char: str) -> dict[str, object]:
    """Return words of templates for elements of a dtype (``f``, ``d``, ``F`` or ``D``) that are only copied:
    ``E`` is their LLVM type, ``SIZE`` its bytes, and ``ALIGN`` their alignment in bytes."""
    size = np.dtype(char).itemsize
    return {"E": _TYPES[char], "SIZE": size, "ALIGN": min(size, 8)}


def scalar(char: str, name: str) -> tuple[str, str]:
    """Return the BLAS argument for the scalar at the address ``%name``, and the instructions before it:
    complex numbers are passed by address, real ones by value."""
    real = {"f": "float", "d": "double"}.get(char)
    if real is None:
        return f"ptr %{name}", ""
    return f"{real} %{name}.v", f"%{name}.v = load {real}, ptr %{name}"


def fill_template(text: str, **words: object) -> str:
    """Return the LLVM text of a template, in which each ``$WORD`` is replaced by its value, and shorthands
    for addresses (`expand_addresses`) and loads of arguments are written out: ``arguments ptr x, _, i64 n``
    loads the first and the third argument."""
    for word, meaning in words.items():
        text = text.replace(f"${word}", str(meaning))
    return expand_addresses(_ARGUMENTS.sub(_loaded, text))


_ARGUMENTS = re.compile(r"^  arguments ((?:.*,\n)*.*)$", re.M)


def _loaded(match: re.Match[str]) -> str:
    """Return the instructions that load the arguments listed in a template."""
    named = [(k, text.split()) for k, text in enumerate(match[1].split(",")) if text.strip() != "_"]
    return "\n".join(f"  %{name} = load {kind}, ptr %args[i64 {k}]" for k, (kind, name) in named)
