"""Loading of kernels from shared libraries, which run on the calling thread; imports no compiler."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from typing import Any


class CKernel:
    """A loaded kernel from a shared library; see `dcarray.lowering.kernel.compiler.LoadedKernel`."""

    loader = f"{__name__}:CKernel"

    def __init__(self, code: bytes, arguments: int, mask: int) -> None:
        self.parts = code, arguments, mask
        self.pack: Callable[..., bytes] = struct.Struct(f"={arguments}q").pack
        with _file(code) as path:
            library = ctypes.CDLL(path)
        self._mask = mask
        self._run: Any = library.run
        self._run.argtypes, self._run.restype = (ctypes.c_char_p,), ctypes.c_int32

    def __call__(self, arguments: bytes, threads: int) -> int:
        """Run the kernel on the calling thread and return the floating-point flags that it raised."""
        raised: int = self._run(arguments)
        return raised & self._mask


@contextlib.contextmanager
def _file(code: bytes) -> Iterator[str]:
    """A context with the path of a temporary file that holds ``code`` and that other users cannot write."""
    with tempfile.TemporaryDirectory(prefix="dcarray-") as folder:
        path = os.path.join(folder, "kernel.so")
        with open(path, "wb") as file:
            file.write(code)
        yield path
