"""What a target is, and the table of them.

A target turns a kernel into source text (a pure function), the source into code (bytes that may be kept
on disk), and the code into a ``Launch``.  How a launch is called is the same for every CPU target:

* Each phase becomes a C function ``int32_t phaseK(const int64_t *args, int64_t lo, int64_t hi)``.
  ``args`` holds the pointers in the order of ``Kernel.buffers``, then the integers in the order of
  ``Kernel.ints``.  The result is ``DIVIDE`` if an integer was divided by zero, else 0.
* ``Launch`` takes one block of int64 (``Launch.pack``): for each phase its extent and the work of one
  iteration, then the pointers, then the integers.  It runs the phases one after the other, each on up to
  ``threads`` threads, and gives back the floating-point flags that any of them raised.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from dcarray.lowering.kernel.nodes import Kernel, Op


class Launch(Protocol):
    """A loaded kernel."""

    @property
    def pack(self) -> Callable[..., bytes]:
        """``pack(extent0, work0, extent1, work1, ..., *pointers, *ints)``, all Python integers."""

    def __call__(self, arguments: bytes, threads: int) -> int:
        """Run the kernel on packed arguments; returns the floating-point flags that were raised."""


class Target(Protocol):
    """A way to run kernels."""

    name: str

    def fingerprint(self) -> str:
        """What code depends on besides its source: compiler, processor and library versions."""

    def is_exact(self, op: Op) -> bool:
        """Has it NumPy's bits itself for this operation, which IEEE 754 leaves open?"""

    def emit(self, kernel: Kernel) -> str:
        """The source of a kernel: deterministic, and a function of the kernel and the machine alone.

        Raises
        ------
        Unsupported
            If an operation cannot be done exactly.
        """

    def compile(self, source: str) -> bytes:
        """Code for this machine.  Raises ``Unsupported`` when the compiler fails."""

    def load(self, kernel: Kernel, code: bytes) -> Launch:
        """Make code of ``compile`` callable; it stays loaded as long as the process lives."""


_MODULES = {"cpu": "cpu.llvm.runtime", "c": "cpu.c.runtime"}
_loaded: dict[str, Target] = {}


def names() -> tuple[str, ...]:
    """The names of the targets."""
    return tuple(_MODULES)


def get(name: str) -> Target:
    """The target of that name; its module is imported when first asked for.

    Raises
    ------
    ValueError
        If there is no such target.
    """
    target = _loaded.get(name)
    if target is None:
        if name not in _MODULES:
            raise ValueError(f"unknown target {name!r}; the targets are {', '.join(map(repr, _MODULES))}")
        module = importlib.import_module(f"{__package__}.{_MODULES[name]}")
        target = _loaded[name] = module.TARGET
    return target
