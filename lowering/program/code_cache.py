"""The cache of compiled kernels: in memory for this process, and on disk for others.

The key is the kernel's text (without sizes, except for those of `specialise`), the compiler with its version,
processor and libraries, and the source of this package and of `dcarray.ir`, so that stale code is never used.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import TYPE_CHECKING

import dcarray.ir
import dcarray.lowering
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.runtime.array_memory import require
from dcarray.lowering.runtime.disk import DiskCache, is_supported, sha256, stored_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from dcarray.lowering.kernel.compiler import Compiler, Loaded
    from dcarray.lowering.kernel.nodes import Kernel

COMPILER_BYTES = 64 << 20
"""Bytes that a compiler may want; without, LLVM ends the process."""


class CompilerFailed(Unsupported):
    """Raised if a valid kernel cannot be compiled by this installation."""


class CodeCache:
    """The compiled kernels of this process, of which a folder keeps the code for other processes.

    Parameters
    ----------
    folder : str, optional
        The folder; with None or an empty string, code is kept in memory only.
    """

    def __init__(self, folder: str | None = None) -> None:
        below = os.environ.get("DCARRAY_CACHE_SHARED") or None  # a cache folder that is only read
        self.disk = DiskCache(folder, below=below) if folder and is_supported() else None
        self.hits = self.disk_hits = self.compiled = 0
        self._lock = threading.RLock()
        _CACHES.add(self)

    def loaded(self, compiler: Compiler, kernel: Kernel) -> Loaded:
        """Return a kernel's loaded code, which is taken from memory or disk if it is there, else compiled.

        Raises
        ------
        Unsupported
            If ``compiler`` cannot express the kernel, or if compilation fails.
        MemoryError
            If too little memory is free for compilation.
        """
        name = (compiler.key, kernel_text(kernel))
        entry = _LOADED.get(name)
        if entry is None:
            with self._lock:
                entry = _LOADED.get(name) or self._load(compiler, kernel, name)
        else:
            self.hits += 1
        if isinstance(entry, Unsupported):
            raise type(entry)(*entry.args)
        return entry

    def _load(self, compiler: Compiler, kernel: Kernel, name: tuple[str, str]) -> Loaded | Unsupported:
        require(COMPILER_BYTES)
        code = None
        if self.disk:  # the digest of the sources takes as long as a small plan
            key = _key(self.disk, *name, compiler.fingerprint())
            code = self.disk.read(key)
        entry: Loaded | Unsupported | None = None
        if code is not None:
            with contextlib.suppress(Unsupported, RuntimeError, OSError):
                entry = compiler.load(kernel, code)
                self.disk_hits += 1
        if entry is None:
            try:
                source = compiler.emit(kernel)
            except Unsupported as refusal:
                return _LOADED.setdefault(name, refusal)
            try:
                code = compiler.compile(source)
                self.compiled += 1
                entry = compiler.load(kernel, code)
            except Unsupported as failure:
                entry = CompilerFailed(*failure.args)
            else:
                if self.disk:
                    self.disk.write(key, code)
        return _LOADED.setdefault(name, entry)

    def made(self, what: str, compiler: Compiler, make: Callable[[], bytes]) -> bytes:
        """Return the bytes named ``what`` from disk if they are there, else from ``make``, whose result must
        depend on ``what`` and the compiler alone."""
        if self.disk is None:
            return make()
        key = _key(self.disk, what, compiler.fingerprint())
        code = self.disk.read(key)
        if code is None:
            self.disk.write(key, code := make())
        return code

    def stats(self) -> dict[str, int]:
        """Return the numbers of kernels that came from memory, from disk and from the compiler."""
        return {"hits": self.hits, "disk_hits": self.disk_hits, "compiled": self.compiled}

    def after_fork(self) -> None:
        """Make a new lock in a forked child, where one that another thread held would never be released."""
        self._lock = threading.RLock()


def source_folders() -> list[str]:
    """Return the folders of the source files that compiled code depends on."""
    return [os.path.dirname(layer.__file__ or "") for layer in (dcarray.ir, dcarray.lowering)]


def _key(disk: DiskCache, *words: str) -> str:
    """Return the key on disk of code that depends on ``words`` and on the source files."""
    return sha256("\0".join((*words, stored_digest(disk, *source_folders()))).encode()).hexdigest()


# Loaded code is never unloaded, so it serves all caches of the process.
_LOADED: dict[tuple[str, str], Loaded | Unsupported] = {}
_CACHES: weakref.WeakSet[CodeCache] = weakref.WeakSet()
_BY_FOLDER: dict[str, CodeCache] = {}


def _after_fork() -> None:
    for each in list(_CACHES):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def of(folder: str | None) -> CodeCache:
    """Return this process's cache for a folder; for None or an empty string, one in memory only."""
    return _BY_FOLDER.setdefault(folder or "", _BY_FOLDER.get(folder or "") or CodeCache(folder))


def forget() -> None:
    """Forget all loaded kernels, as in a fresh process; code stays in memory, as it may be running."""
    _LOADED.clear()
