"""Compiled code, found again: in memory for this process, on disk for the next ones.

The key is the kernel's text (which has no sizes in it), the target with its compiler, processor and
libraries, and the text of this package, so that nothing old is ever taken for something new.  On disk each
piece of code is one file: a header, a checksum, the code.  Nothing in the folder is trusted that another
user owns or may write, and whatever is wrong there costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from .kernel import text as kernel_text
from .memory import require
from .target import Unsupported

if TYPE_CHECKING:
    from .kernel import Kernel
    from .target import Launch, Target

LIMIT = 256 << 20
"""Bytes that a cache folder may hold."""

ROOM = 64 << 20
"""Bytes that a compiler may want; without, LLVM ends the process."""

_MAGIC = b"dcarray code 1\n\0"
_POSIX = hasattr(os, "geteuid") and hasattr(os, "O_NOFOLLOW") and os.open in os.supports_dir_fd


class CompilerFailed(Unsupported):
    """The kernel is fine, but this installation cannot compile it."""


class DiskCache:
    """Pieces of code in one folder, shared by any number of processes.

    Parameters
    ----------
    folder : str
        It is made if it does not exist.
    limit : int, optional
        Bytes to hold at most; the oldest files go first.
    """

    def __init__(self, folder: str, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._used: int | None = None
        self._warned = False

    def read(self, key: str) -> bytes | None:
        """The code that was written under ``key``, if it is there and sound."""
        try:
            with self._directory() as directory:
                handle = os.open(key, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
                with open(handle, "rb") as file:
                    if not _ours(os.fstat(handle), stat.S_ISREG):
                        return None
                    content = file.read()
                    with contextlib.suppress(OSError):
                        os.utime(handle)  # the oldest are those unused for longest
        except OSError:
            return None
        head = len(_MAGIC) + 32
        code = content[head:]
        return code if content[:head] == _MAGIC + _checksum(key, code) else None

    def write(self, key: str, code: bytes) -> None:
        """Keep ``code`` under ``key``, if that can be done."""
        content = _MAGIC + _checksum(key, code) + code
        scratch = f"tmp-{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
        try:
            with self._directory() as directory:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    handle = os.open(scratch, flags, 0o600, dir_fd=directory)
                    with open(handle, "wb") as file:
                        file.write(content)
                    # At once there is the whole file or none, whatever other processes do.
                    os.rename(scratch, key, src_dir_fd=directory, dst_dir_fd=directory)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(scratch, dir_fd=directory)
                    raise
                self._make_room(directory, len(content))
        except OSError as error:
            self._warn(error.strerror or str(error))

    @contextlib.contextmanager
    def _directory(self) -> Iterator[int]:
        """The open folder, which is certain to be ours alone to write."""
        with contextlib.suppress(FileExistsError):
            os.makedirs(self.folder, 0o700)
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _ours(os.fstat(handle), stat.S_ISDIR):
                self._warn("another user owns it or may write to it")
                raise PermissionError
            yield handle
        finally:
            os.close(handle)

    def _make_room(self, directory: int, added: int) -> None:
        if self._used is not None:
            self._used += added
            if self._used <= self.limit:
                return
        files = []
        with os.scandir(directory) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    files.append((found.st_mtime, found.st_size, entry.name))
        self._used = sum(size for _, size, _ in files)
        if self._used <= self.limit:
            return
        for _, size, name in sorted(files):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
            self._used -= size
            if self._used <= self.limit * 3 // 4:
                return

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"compiled code is not kept in {self.folder}: {reason}", RuntimeWarning, stacklevel=2
            )


def _ours(found: os.stat_result, kind: object) -> bool:
    assert callable(kind)
    return bool(kind(found.st_mode)) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _checksum(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + code).digest()


class CodeCache:
    """Loaded kernels of this process, backed by a folder.

    Parameters
    ----------
    folder : str, optional
        Where code outlives the process; empty or None for nowhere.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.disk = DiskCache(folder) if folder and _POSIX else None
        self.hits = self.disk_hits = self.compiled = 0
        self._lock = threading.RLock()
        _CACHES.add(self)

    def launch(self, target: Target, kernel: Kernel) -> Launch:
        """The loaded code of a kernel, from memory, from disk or from the compiler.

        Raises
        ------
        Unsupported
            If the target cannot do the kernel or its compiler fails.
        MemoryError
            If there is little memory left.
        """
        name = (target.name, kernel_text(kernel))
        found = _LOADED.get(name)
        if found is None:
            with self._lock:
                found = _LOADED.get(name) or self._load(target, kernel, name)
        else:
            self.hits += 1
        if isinstance(found, Unsupported):
            raise type(found)(*found.args)
        return found

    def _load(self, target: Target, kernel: Kernel, name: tuple[str, str]) -> Launch | Unsupported:
        require(ROOM)
        key = hashlib.sha256("\0".join((*name, target.fingerprint(), _sources())).encode()).hexdigest()
        code = self.disk.read(key) if self.disk else None
        found: Launch | Unsupported | None = None
        if code is not None:
            with contextlib.suppress(Unsupported, RuntimeError, OSError):
                found = target.load(kernel, code)
                self.disk_hits += 1
        if found is None:
            try:
                source = target.emit(kernel)
            except Unsupported as refusal:
                return _LOADED.setdefault(name, refusal)
            try:
                code = target.compile(source)
                self.compiled += 1
                found = target.load(kernel, code)
            except Unsupported as failure:
                found = CompilerFailed(*failure.args)
            else:
                if self.disk:
                    self.disk.write(key, code)
        return _LOADED.setdefault(name, found)

    def stats(self) -> dict[str, int]:
        """How many kernels came from memory, from disk and from the compiler."""
        return {"hits": self.hits, "disk_hits": self.disk_hits, "compiled": self.compiled}

    def after_fork(self) -> None:
        """In the child: a lock that another thread of the parent held would never be released."""
        self._lock = threading.RLock()


# Loaded code is never unloaded, so it serves all caches of the process.
_LOADED: dict[tuple[str, str], Launch | Unsupported] = {}
_CACHES: weakref.WeakSet[CodeCache] = weakref.WeakSet()
_BY_FOLDER: dict[str, CodeCache] = {}


def _after_fork() -> None:
    for each in list(_CACHES):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def of(folder: str | None) -> CodeCache:
    """The cache of this process for a folder; empty or None: in memory only."""
    return _BY_FOLDER.setdefault(folder or "", _BY_FOLDER.get(folder or "") or CodeCache(folder))


def forget() -> None:
    """Look everything up anew, as a fresh process would; what is loaded stays loaded."""
    _LOADED.clear()


@cache
def _sources() -> str:
    """A digest of this package: code that another version made is never used."""
    digest = hashlib.sha256()
    root = os.path.dirname(__file__)
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    digest.update(name.encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()
