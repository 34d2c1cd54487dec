"""Kernels of object code, linked into this process and launched on threads (`lowering.runtime.threads`)."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dcarray.lowering.cpu.llvm.object_code import linking
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.program.loaded_plan import NotPortable
from dcarray.lowering.runtime import threads as pool
from dcarray.lowering.runtime.disk import sha256
from dcarray.lowering.runtime.forks import held_in_forks
from dcarray.lowering.runtime.stopping import STOPPED, Stopped

__all__ = ["Launch", "ObjectCompiler", "linked"]


class Launch:
    """A compiled kernel, callable on several threads; implements `LoadedKernel`.

    ``arguments`` is their number; flags outside ``mask`` are not reported.  ``parts`` serialises the launch
    for another process (see `lowering.program.loaded_plan`), where that is possible.
    """

    __slots__ = ("_first", "_mask", "_table", "pack", "parts")
    loader = f"{__name__}:linked"

    def __init__(self, addresses: Sequence[int], arguments: int, mask: int = 15) -> None:
        phases = len(addresses)
        self._mask = mask
        self.parts: tuple[Any, ...] | None = None
        self._table = (ctypes.c_void_p * phases)(*addresses)
        pack = struct.Struct(f"{2 + 2 * phases + arguments}q").pack
        self._first = ctypes.addressof(self._table), phases
        self.pack: Callable[..., bytes] = partial(pack, *self._first)

    @classmethod
    def of(cls, code: bytes, phases: int, arguments: int, mask: int) -> Launch:
        """Return the launch of object code; raise RuntimeError if it cannot be linked."""
        addresses = linking.load(code, [f"phase{number}" for number in range(phases)])
        launch = cls(addresses, arguments, mask)
        launch.parts = (code, phases, arguments, mask)
        return launch

    @property
    def native(self) -> tuple[int, tuple[int, int]]:
        """The flags that are reported, and how a block begins, for the C module."""
        return self._mask, self._first

    def __call__(self, arguments: bytes, threads: int) -> int:
        flags = pool.launch(arguments, threads)
        if flags & STOPPED:
            raise Stopped
        return flags & self._mask

    @property
    def repeat(self) -> Callable[..., int] | None:
        """The function ``repeat(iterations, threads, launches)``, which runs launches in order in each
        iteration of a loop and returns the floating-point flags that they raised; None without the C module.
        Each launch comes with a function that packs its arguments for an iteration; these must be linear in
        it."""
        return _repeat if pool.native is not None else None


def _repeat(
    iterations: range, threads: int, launches: Sequence[tuple[Launch, Callable[[int], bytes]]]
) -> int:
    blocks, rows = [], []
    for launch, arguments in launches:
        block = np.frombuffer(arguments(iterations[0]), np.int64).copy()
        steps = np.frombuffer(arguments(iterations[0] + iterations.step), np.int64) - block
        blocks += [block, steps]
        rows.append((block.ctypes.data, steps.ctypes.data, block.size, launch._mask))
    flags: int = pool.native.repeat(np.array(rows, np.int64), threads, len(iterations))
    if flags & STOPPED:
        raise Stopped
    return flags


def linked(code: bytes, phases: int, arguments: int, mask: int) -> Launch:
    """Return the launch of object code, which is linked only the first time."""
    key = (sha256(code).digest(), phases, arguments, mask)
    launch = _LINKED.get(key)
    if launch is None:
        with _linking:
            launch = _LINKED.get(key)
            if launch is None:
                try:
                    launch = Launch.of(code, phases, arguments, mask)
                    launch.parts = None  # it is not to travel on, and need not keep its code
                    _LINKED[key] = launch
                except (RuntimeError, OSError, ImportError) as error:
                    raise NotPortable(f"LLVM: {error}") from error
    return launch


_LINKED: dict[tuple[bytes, int, int, int], Launch] = {}  # loaded code is never unloaded
_linking = held_in_forks(threading.Lock())


class ObjectCompiler:
    """The common part of the compilers of kernels and of routines; see `lowering.kernel.compiler`."""

    def fingerprint(self) -> str:
        """Return a digest of what object code depends on besides its text."""
        from dcarray.lowering.cpu.llvm.object_code import engine

        return engine.fingerprint()

    def compile(self, source: str) -> bytes:
        """Return the object code of an LLVM text."""
        from dcarray.lowering.cpu.llvm.object_code import engine

        try:
            return engine.compile_object(source)
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error

    def linked(self, code: bytes, phases: int, arguments: int, mask: int) -> Launch:
        """Link object code into this process and return it as a callable `Launch`."""
        try:
            return Launch.of(code, phases, arguments, mask)
        except (RuntimeError, OSError, ImportError) as error:
            raise Unsupported(f"LLVM: {error}") from error
