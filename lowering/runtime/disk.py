"""The on-disk cache of compiled code and plans: a folder of files, each with a header and a checksum.

Files that another user owns or may write are not trusted.  A damaged or missing file only costs time.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    import hashlib

    Hash: TypeAlias = Callable[..., "hashlib._Hash"]

MAX_BYTES = 256 << 20
"""Bytes that a cache folder may hold."""

_MAGIC = b"dcarray code 1\n\0"
_OURS = ".dcarray"  # the suffix of the cache's files: other files in the folder stay untouched
_UNWRITTEN = 0.1  # seconds, at most, that a program waits at its end for files that are being written
_POSIX = hasattr(os, "geteuid") and hasattr(os, "O_NOFOLLOW") and os.open in os.supports_dir_fd


def _sha256() -> Hash:
    for name in ("_sha2", "_sha256"):  # of Python 3.12, and before
        with contextlib.suppress(ImportError):
            return cast("Hash", importlib.import_module(name).sha256)
    return cast("Hash", importlib.import_module("hashlib").sha256)


sha256 = _sha256()
"""The built-in SHA-256, as the standard library's `random` uses it: hashlib loads OpenSSL, which takes 3
MB."""


class _Holding:
    """The files whose writing the caches of this process postpone.

    Attributes
    ----------
    wanted : callable or None
        Returns, before each write, whether it is postponed; with None, as in most processes, none is.
    held : dict
        The postponed contents by folder and key.
    """

    def __init__(self) -> None:
        self.wanted: Callable[[], bool] | None = None
        self.held: dict[tuple[str, str], bytes] = {}


HOLDING = _Holding()


def write_held(inside: str | None = None) -> None:
    """Write the postponed files into those folders that still exist.

    Parameters
    ----------
    inside : str, optional
        A folder: only files that belong into it are written, unless they must still be postponed.  By default
        all files are written.
    """
    held, HOLDING.held = HOLDING.held, {}
    for (folder, key), code in held.items():
        if inside is not None and not folder.startswith(inside):
            HOLDING.held[folder, key] = code
        elif os.path.isdir(folder):
            DiskCache(folder).write(key, code, now=inside is None)


@contextlib.contextmanager
def unwritten(folders: Iterable[str]) -> Iterator[None]:
    """A context in which no process that may postpone files writes to some folders; it begins after at most a
    tenth of a second without this guarantee, as such a process may have no processor."""
    end = time.monotonic() + _UNWRITTEN
    with contextlib.ExitStack() as opened:
        for folder in folders:
            with contextlib.suppress(OSError):  # there is no such folder, or it cannot be locked
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                opened.callback(os.close, handle)
                while not _locked(handle, alone=True) and time.monotonic() < end:
                    time.sleep(1e-3)
        yield


def _locked(handle: int, alone: bool) -> bool:
    """Try to lock an open folder, exclusively without waiting or else shared; return whether it is locked."""
    import fcntl  # of POSIX systems

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except BlockingIOError:
        return False
    return True


class DiskCache:
    """A cache of byte strings in a folder that any number of processes share; the folder is created if
    needed.  It holds at most ``limit`` bytes: the oldest files are deleted first.  Keys that it lacks are
    looked up in the folder ``below``, which is only read, and may be owned by the administrator."""

    def __init__(self, folder: str, limit: int = MAX_BYTES, below: str | None = None) -> None:
        self.folder, self.limit, self.below = folder, limit, below
        self._used: int | None = None
        self._warned: set[str] = set()

    def read(self, key: str) -> bytes | None:
        """Return the bytes stored under ``key``; None if there are none, or if the file is damaged."""
        data = self.read_own(key)
        if data is None and self.below is not None and os.path.isdir(self.below):
            data = self._read_in(self.below, key, (os.geteuid(), 0))
        return data

    def read_own(self, key: str) -> bytes | None:
        """Return the bytes stored under ``key`` in this folder, not that below; None if there are none."""
        if HOLDING.held and (held := HOLDING.held.get((self.folder, key))) is not None:
            return held
        return self._read_in(self.folder, key, (os.geteuid(),)) if os.path.isdir(self.folder) else None

    def _read_in(self, folder: str, key: str, owners: tuple[int, ...]) -> bytes | None:
        try:
            with self._opened(folder, owners) as directory:
                handle = os.open(key + _OURS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
                with os.fdopen(handle, "rb") as file:
                    if not is_private(os.fstat(handle), stat.S_ISREG, owners):
                        return None
                    content = file.read()
                    if folder == self.folder:
                        with contextlib.suppress(OSError):
                            os.utime(handle)  # the oldest are those unused for longest
        except OSError:
            return None
        return checked(key, content)

    def write(self, key: str, code: bytes, now: bool = False) -> None:
        """Store ``code`` under ``key``; with ``now``, never postponed.  A failure gives one warning."""
        wanted = None if now else HOLDING.wanted
        if wanted is not None and wanted():
            HOLDING.held[self.folder, key] = code
            return
        content = _MAGIC + _checksum(key, code) + code
        scratch = f"tmp-{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}{_OURS}"
        try:
            with self._directory() as directory:
                if wanted is not None:
                    _locked(directory, alone=False)  # until it is closed: see `unwritten`
                    if wanted():
                        HOLDING.held[self.folder, key] = code
                        return
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    handle = os.open(scratch, flags, 0o600, dir_fd=directory)
                    with os.fdopen(handle, "wb") as file:
                        file.write(content)
                    # Atomic: other processes see the whole file or none.
                    os.rename(scratch, key + _OURS, src_dir_fd=directory, dst_dir_fd=directory)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(scratch, dir_fd=directory)
                    raise
                self._make_room(directory, len(content))
        except OSError as error:
            self._warn(error.strerror or str(error))

    @contextlib.contextmanager
    def _directory(self) -> Iterator[int]:
        """Yield the file descriptor of this folder, which is created if needed."""
        with contextlib.suppress(FileExistsError):
            os.makedirs(self.folder, 0o700)
        with self._opened(self.folder, (os.geteuid(),)) as handle:
            yield handle

    @contextlib.contextmanager
    def _opened(self, folder: str, owners: tuple[int, ...]) -> Iterator[int]:
        """Yield a folder's file descriptor; raise PermissionError if others than ``owners`` may write."""
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not is_private(os.fstat(handle), stat.S_ISDIR, owners):
                self._warn("another user owns it or may write to it", folder)
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
                if not entry.name.endswith(_OURS):
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    files.append((status.st_mtime, status.st_size, entry.name))
        self._used = sum(size for _, size, _ in files)
        if self._used <= self.limit:
            return
        for _, size, name in sorted(files):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
            self._used -= size
            if self._used <= self.limit * 3 // 4:
                return

    def _warn(self, reason: str, folder: str | None = None) -> None:
        folder = folder or self.folder
        if folder not in self._warned:
            self._warned.add(folder)
            doing = "kept in" if folder == self.folder else "read from"
            warnings.warn(f"compiled code is not {doing} {folder}: {reason}", RuntimeWarning, stacklevel=2)


def is_private(status: os.stat_result, kind: Callable[[int], bool], owners: tuple[int, ...]) -> bool:
    """Whether a file is of the tested ``kind``, and only its owner, one of ``owners``, may write it."""
    return kind(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o022


def checked(key: str, content: bytes) -> bytes | None:
    """Return the code in a file's content; None if the content is damaged or was stored under another key."""
    head = len(_MAGIC) + 32
    code = content[head:]
    return code if content[:head] == _MAGIC + _checksum(key, code) else None


def _checksum(key: str, code: bytes) -> bytes:
    return sha256(key.encode() + b"\0" + code).digest()


def is_supported() -> bool:
    """Whether this system has the calls that give the owner of an open file."""
    return _POSIX


@cache
def cache_in(folder: str, below: str | None = None) -> DiskCache | None:
    """Return the cache in a folder, one object per folder; None if the system does not support the cache."""
    return DiskCache(folder, below=below) if is_supported() else None


@cache
def stamp(*folders: str) -> str:
    """Return a digest of the names, sizes and times of change of the Python files in folders."""
    lines = []
    remaining = [*folders]
    while remaining:
        folder = remaining.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    state = entry.stat()
                    lines.append(f"{folder}\0{name}\0{state.st_size}\0{state.st_mtime_ns}")
                elif name != "__pycache__" and entry.is_dir():
                    remaining.append(entry.path)
    return sha256("\0".join(sorted(lines)).encode()).hexdigest()


_DIGESTS: dict[tuple[DiskCache, tuple[str, ...]], str] = {}


def stored_digest(store: DiskCache, *folders: str) -> str:
    """Return the digest of the Python files in folders, stored under their sizes and modification times,
    since reading all files takes 10 to 50 ms."""
    if (text := known_digest(store, *folders)) is None:
        text = _DIGESTS[store, folders] = digest(*folders)
        store.write(_key_of_digest(*folders), text.encode())
    return text


def known_digest(store: DiskCache, *folders: str) -> str | None:
    """Return what `stored_digest` has stored; None if there is nothing: the files are not read."""
    if (text := _DIGESTS.get((store, folders))) is None:
        # times and sizes of others' files say nothing of ours
        if (stored := store.read_own(_key_of_digest(*folders))) is None:
            return None
        text = _DIGESTS[store, folders] = stored.decode()
    return text


def _key_of_digest(*folders: str) -> str:
    return sha256(("sources\0" + stamp(*folders)).encode()).hexdigest()


@cache
def digest(*folders: str) -> str:
    """Return a digest of the contents of the Python files in folders, part of cache keys of this version."""
    hashed = sha256()
    for root in folders:
        for folder, inner, files in os.walk(root):
            inner.sort()
            for name in sorted(files):
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), "rb") as file:
                        hashed.update(name.encode() + b"\0" + file.read() + b"\0")
    return hashed.hexdigest()
