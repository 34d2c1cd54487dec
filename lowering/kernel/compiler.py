"""The interfaces of compilers of kernels and of loaded kernels.

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
    """Code that is loaded in this process.

    ``loader`` is the import path ``module:function`` of the function that loads it in another process, and
    ``parts`` are that function's arguments, plain values; None if the code cannot be sent to others.
    """

    @property
    def loader(self) -> str: ...

    @property
    def parts(self) -> tuple[Any, ...] | None: ...


class LoadedKernel(Loaded, Protocol):
    """A kernel that can be called on a CPU; devices have their own (`dcarray.lowering.gpu.kernels`)."""

    @property
    def pack(self) -> Callable[..., bytes]:
        """The function ``pack(extent0, work0, extent1, work1, ..., *pointers, *ints)`` of Python integers."""

    def __call__(self, arguments: bytes, threads: int) -> int:
        """Run the kernel on packed arguments; returns the floating-point flags that were raised."""


class Compiler(Protocol):
    """A compiler of kernels: it prints, compiles and loads them."""

    @property
    def key(self) -> str:
        """A name of the compiler and its settings, the first part of the key of compiled code."""

    def fingerprint(self) -> str:
        """Return the versions of compiler, processor and libraries on which code depends."""

    def emit(self, kernel: Kernel) -> str:
        """Return the source text of a kernel, which must depend on the kernel and the machine alone.

        Raises
        ------
        Unsupported
            If an operation cannot be computed exactly.
        """

    def compile(self, source: str) -> bytes:
        """Return code for this machine; raise ``Unsupported`` if the compiler fails."""

    def load(self, kernel: Kernel, code: bytes) -> Loaded:
        """Return the loaded form of code from ``compile``, which stays loaded until the process ends."""
