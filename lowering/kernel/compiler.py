"""What compiles kernels, and what a loaded kernel is.

A compiler turns a kernel into source text (a pure function), the source into code (bytes that may be kept
on disk), and the code into a loaded kernel.  How that is called is the same on every CPU:

* Each phase becomes a C function ``int32_t phaseK(const int64_t *args, int64_t lo, int64_t hi)``.
  ``args`` holds the pointers in the order of ``Kernel.buffers``, then the integers in the order of
  ``Kernel.ints``.  The result is ``DIVIDE`` if an integer was divided by zero, else 0.
* A loaded kernel takes one block of int64 (``pack``): for each phase its extent and the work of one
  iteration, then the pointers, then the integers.  It runs the phases one after the other, each on up to
  ``threads`` threads, and gives back the floating-point flags that any of them raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from .nodes import Kernel


class Loaded(Protocol):
    """Code that has been loaded.

    ``loader`` is the import path ``module:function`` of what loads it in another process, and ``parts`` are
    the arguments of that, plain values; None if it is of use in this process only.
    """

    @property
    def loader(self) -> str: ...

    @property
    def parts(self) -> tuple[Any, ...] | None: ...


class LoadedKernel(Loaded, Protocol):
    """A kernel that can be called on a CPU; devices have their own (`dcarray.lowering.gpu.kernels`)."""

    @property
    def pack(self) -> Callable[..., bytes]:
        """``pack(extent0, work0, extent1, work1, ..., *pointers, *ints)``, all Python integers."""

    def __call__(self, arguments: bytes, threads: int) -> int:
        """Run the kernel on packed arguments; returns the floating-point flags that were raised."""


class Compiler(Protocol):
    """From kernels to loaded kernels."""

    @property
    def key(self) -> str:
        """A name of the code that it makes of a kernel, different for every compiler and its settings."""

    def fingerprint(self) -> str:
        """Return the versions of compiler, processor and libraries that code depends on, besides its
        source."""

    def emit(self, kernel: Kernel) -> str:
        """The source of a kernel: deterministic, and a function of the kernel and the machine alone.

        Raises
        ------
        Unsupported
            If an operation cannot be done exactly.
        """

    def compile(self, source: str) -> bytes:
        """Code for this machine.  Raises ``Unsupported`` when the compiler fails."""

    def load(self, kernel: Kernel, code: bytes) -> Loaded:
        """Make code of ``compile`` callable; it stays loaded as long as the process lives."""
