"""The thread pool's Python side: its worker threads, and the launches of kernels on it.

Workers are Python daemon threads that stay in one native call, without the GIL: they spin for a moment after
a job (a spinning worker takes a core from the BLAS library's threads, so it must be short) and then sleep on
a condition variable.  A job is one phase of a kernel, cut into chunks, or all iterations of a loop of
launches (`loop_launches`).  Each worker owns some chunks and steals those of others when its own are done;
workers that wake too late find the job closed, so a launch never waits for an idle thread.  A launch that
finds the pool busy with another thread's job runs on its own thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import struct
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from dcarray.lowering.cpu.llvm.object_code import linking
from dcarray.lowering.program.loaded_plan import NotPortable
from dcarray.lowering.runtime.disk import sha256
from dcarray.lowering.runtime.forks import held_in_forks
from dcarray.lowering.runtime.stopping import STOPPED, Stopped
from dcarray.lowering.runtime.worker_threads import WORKER

from .layout import pool_bytes

MOST_THREADS = 256
_NONE_YET = 1  # the placeholder for the address of a pool that is not created yet
_pools = {1: 0}
_lock = threading.Lock()
_stopped = False


_code: bytes | None = None
_SIZE = struct.Struct("<I")


def with_pool_code(code: bytes) -> bytes:
    """Return the object code of the pool followed by that of a kernel, for the cache and other processes."""
    own = object_code()
    return _SIZE.pack(len(own)) + own + code


def object_code(known: bytes | None = None) -> bytes:
    """Return the object code of the pool, kept from the first call: ``known`` if given, else compiled.  It is
    stored with each kernel's code, so that a process that finds kernels in a cache compiles nothing."""
    global _code
    if _code is None:
        _code = known or compiled()
    return _code


def compiled() -> bytes:
    """Return the object code of the pool, compiled now."""
    from dcarray.lowering.cpu.llvm.object_code import engine

    from . import pool

    # as it is written it is as fast, and there in a fifth of the time, for which a first plan waits
    return engine.compile_object(pool.source(), optimised=False)


@cache
def _native() -> tuple[Any, ...]:
    """Return the native functions init(pool, threads), work(pool, index), stop(pool), launch(pool, packed)
    and repeat(pool, iterations, launches, table)."""
    names = ("dc_pool_init", "dc_pool_work", "dc_pool_stop", "dc_launch", "dc_repeat")
    addresses = linking.load(object_code(), names)
    kinds = (
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p),
        ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p),
    )
    return tuple(kind(address) for kind, address in zip(kinds, addresses, strict=True))


def _pool(threads: int) -> int:
    """Return the address of the pool of ``threads`` threads, which is started if needed; 0 if the interpreter
    is shutting down, so that no pool can be started."""
    with _lock:
        address = _pools.get(threads)
        if address is None and not _stopped:
            init, work, *_ = _native()
            # Never freed: workers touch it as long as the process lives.
            memory = ctypes.create_string_buffer(pool_bytes(threads) + 64)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
            address = ctypes.addressof(memory) + 63 & -64
            init(address, threads)
            try:
                for index in range(1, threads):
                    name = f"{WORKER}-{index}"
                    threading.Thread(target=work, args=(address, index), name=name, daemon=True).start()
            except RuntimeError:  # the system has no more threads; those that run suffice
                pass
            _pools[threads] = address
        return address or 0


def is_running() -> bool:
    """Whether a thread pool has been started in this process."""
    return any(_pools.values())


def _after_fork() -> None:
    """Forget the pools in a forked child, in which their threads do not exist."""
    global _lock
    _lock = threading.Lock()
    _forget()


def _forget() -> None:
    _pools.clear()
    _pools[1] = 0


def _stop() -> None:
    """Make all workers leave their native calls before the interpreter shuts down."""
    global _stopped
    with _lock:
        _stopped = True
        running = tuple(_pools.values())
        _forget()
    for address in running:
        if address:
            _native()[2](address)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_stop)


class Launch:
    """A compiled kernel, callable on the thread pool; implements `LoadedKernel`.

    ``arguments`` is their number; flags outside ``mask`` are not reported.  ``parts`` serialises the launch
    for another process (see `lowering.program.loaded_plan`), where that is possible.
    """

    __slots__ = ("_call", "_first", "_mask", "_table", "pack", "parts")
    loader = f"{__name__}:linked"

    def __init__(self, addresses: Sequence[int], arguments: int, mask: int = 15) -> None:
        phases = len(addresses)
        self._mask = mask
        self.parts: tuple[Any, ...] | None = None
        self._table = (ctypes.c_void_p * phases)(*addresses)
        pack = struct.Struct(f"{2 + 2 * phases + arguments}q").pack
        self._first = ctypes.addressof(self._table), phases
        self.pack: Callable[..., bytes] = partial(pack, *self._first)
        self._call = _native()[3]

    @classmethod
    def of(cls, code: bytes, phases: int, arguments: int, mask: int) -> Launch:
        """Return the launch of `with_pool_code`'s object code; raise RuntimeError if it cannot be linked."""
        head = _SIZE.size
        size = _SIZE.unpack_from(code)[0] if len(code) > head else 0
        addresses = linking.load(code[head + size :], [f"phase{number}" for number in range(phases)])
        object_code(code[head : head + size])
        made = cls(addresses, arguments, mask)
        made.parts = (code, phases, arguments, mask)
        return made

    @property
    def native(self) -> tuple[int, int, tuple[int, int]]:
        """The address of ``launch(pool, packed)``, the flags that are reported, and how ``packed`` begins.
        The pool 0 stands for this thread alone; for the pool 1, a launch that is for several threads does
        nothing and returns -1."""
        address = ctypes.cast(self._call, ctypes.c_void_p).value
        assert address is not None
        return address, self._mask, self._first

    def __call__(self, arguments: bytes, threads: int) -> int:
        flags: int = self._call(_pools.get(threads, _NONE_YET), arguments)
        if flags < 0:
            flags = self._call(_pool(min(threads, MOST_THREADS)), arguments)
        if flags & STOPPED:
            raise Stopped
        return flags & self._mask

    @staticmethod
    def repeat(
        iterations: range, threads: int, launches: Sequence[tuple[Launch, Callable[[int], bytes]]]
    ) -> int:
        """Run launches in order in each iteration of a loop; return the floating-point flags that they
        raised. Each comes with a function that packs its arguments for an iteration; these must be linear in
        it."""
        blocks, rows = [], []
        for launch, arguments in launches:
            block = np.frombuffer(arguments(iterations[0]), np.int64).copy()
            steps = np.frombuffer(arguments(iterations[0] + iterations.step), np.int64) - block
            blocks += [block, steps]
            rows.append((block.ctypes.data, steps.ctypes.data, block.size, launch._mask))
        table = np.array(rows, np.int64)
        pool = _pools.get(threads) or _pool(min(threads, MOST_THREADS))
        flags: int = _native()[4](pool, len(iterations), len(rows), table.ctypes.data)
        if flags & STOPPED:
            raise Stopped
        return flags


def linked(code: bytes, phases: int, arguments: int, mask: int) -> Launch:
    """Return the launch of object code, which is linked only the first time."""
    key = (sha256(code).digest(), phases, arguments, mask)
    found = _LINKED.get(key)
    if found is None:
        with _linking:
            found = _LINKED.get(key)
            if found is None:
                try:
                    found = Launch.of(code, phases, arguments, mask)
                    found.parts = None  # it is not to travel on, and need not keep its code
                    _LINKED[key] = found
                except (RuntimeError, OSError, ImportError) as error:
                    raise NotPortable(f"LLVM: {error}") from error
    return found


_LINKED: dict[tuple[bytes, int, int, int], Launch] = {}  # loaded code is never unloaded
_linking = held_in_forks(threading.Lock())
