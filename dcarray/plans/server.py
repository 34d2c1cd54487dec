"""The main loop of the planning process, which answers a program's requests for plans through a socket.

The planning process compiles plans beside the user's program.  It is not a child of the program, which may
wait for its children, and has a process group of its own, so that no interrupt of the terminal reaches it.
It stays in the program's session: Linux divides the processors among sessions first, and priorities only
count within a session.  When the program has ended, the planning process makes the plans that are missing,
for the program's next run, and waits for another program for a while (`dcarray.plans.idle_planners`).
"""

from __future__ import annotations

import _socket as socket  # without the enumerations of `socket`, which take 2 ms
import gc
import os
import pickle
import select
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dcarray.core import open_door
from dcarray.core.errors import Untraceable
from dcarray.lowering.runtime.disk import HOLDING, write_held

from . import disk_store, requests

IDLE = 30.0
"""Seconds without work after which a planning process ends."""
_SETTLED = 2.0  # seconds after which a cache folder that is still there is likely to stay
_FINISHING = 10.0  # seconds of work on plans of a program that has ended
_FINISHED = 20.0  # seconds after which such work is given up
_TRIES = 20  # to lower the session's priority
_MOST_MEMORY = 1 << 20  # kilobytes, with which a planning process serves no further program
NICE_ALONE = 11
"""Priority steps below the program if there is one processor: the planning process gets a thirteenth of
it."""
NICE = 10
"""Priority steps below the program if there are several processors; with Linux's idle policy, the planning
process gets all of a free processor, and hardly anything of one that the program uses."""
HEAD = 8  # bytes of a message's length, which comes before it
READY = b"dcarray\n"  # the first message of a planning process


_IDLE = """
if hasattr(os, "SCHED_IDLE"):
    try: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError: pass  # not allowed here
"""
_LOWERS = ("/usr/bin/nice", "/bin/nice")


def words(executable: str, nice: int = NICE) -> list[str]:
    """Return the command line of a planning process, ``nice`` steps below this process's priority.

    If the system has the command ``nice``, the priority is lowered before the interpreter starts, which takes
    some milliseconds.  The search for packages takes twice as long, so it is put off (``-S``) until the
    process has lowered its priority in any case.
    """
    lower = next((path for path in _LOWERS if nice and os.access(path, os.X_OK)), None)
    before = [] if lower is None else [lower, "-n", str(nice)]
    return [*before, executable, "-S", "-c", command(nice)]


def command(nice: int = NICE) -> str:
    """Return the Python source of a planning process, with this process's import paths, and a priority
    ``nice`` steps below this process's.

    Its standard input is a socket, to which it first writes its process number, in `HEAD` bytes.  Its only
    argument is the path (`idle_planners.place_of`) at which it may wait for other programs.
    """
    priority = min(os.getpriority(os.PRIO_PROCESS, 0) + nice, 19)
    return (
        "import gc, os, sys\n"
        "gc.disable()\n"  # next to nothing that is made at first is garbage: see `serve`
        "os.setpgid(0, 0)\n"  # by the parent, since the leader of a process group cannot leave its session
        "if os.fork(): os._exit(0)\n"
        f"os.setpriority(os.PRIO_PROCESS, 0, {priority})\n"  # before all imports, which are half of the work
        f"{_IDLE if nice == NICE else ''}"
        f"try: os.write(0, os.getpid().to_bytes({HEAD}, 'little'))\n"
        "except OSError: pass\n"  # the program has ended, and perhaps left something to do
        "os.closerange(3, 1 << 12)\n"
        "sys.path[:] = filter(None, sys.path)\n"  # no sitecustomize.py of the working folder
        "import site; site.main()\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from dcarray.plans.server import serve\n"
        "serve()\n"
    )


def message(content: Any) -> bytes:
    """Return a message as bytes: the length of its pickled content, in `HEAD` bytes, and the content."""
    data = pickle.dumps(content, protocol=5)
    return len(data).to_bytes(HEAD, "little") + data


def serve() -> None:
    """Run the planning process: answer the requests of one program after the other, until none comes."""
    place = next(iter(sys.argv[1:]), "")
    first = socket.socket(fileno=os.dup(0))
    os.dup2(2, 0)
    _send(first, READY)
    chores = warm_up()
    program: socket.socket | None = first
    # Whoever has run a program may remove its cache folder once it has ended, and must not meet new files.
    HOLDING.wanted = lambda: program is None or _is_ready(program, 0)
    while program is not None:
        over = threading.Event()
        again = socket.socket(fileno=os.dup(program.fileno()))  # of the same connection
        threading.Thread(target=_watch, args=(again, not place, over), daemon=True).start()
        left = finish(_serve_program(program, chores))
        with suppress(OSError):  # it has left
            program.shutdown(socket.SHUT_RDWR)
        program.close()
        program = None
        program = _next_program(place, chores, left, over)
        if program is not None:
            _send(program, os.getpid().to_bytes(HEAD, "little") + READY)
    _write_held()


def _watch(program: socket.socket, gives_way: bool, over: threading.Event) -> None:
    """Wait until a program has left, and then limit the work that is left.

    No program waits for the plan that is being made then.  So a planning process with the program's own
    priority (``gives_way``) now only uses idle processors.  If other programs keep these busy, the work would
    take minutes, and many such processes would hold memory: the process ends after `_FINISHED` seconds,
    unless ``over`` is set before.
    """
    poll = select.poll()
    poll.register(program, getattr(select, "POLLRDHUP", 0))
    poll.poll()
    program.close()
    if gives_way:
        with suppress(OSError, AttributeError):  # not Linux, or not allowed here
            # the thread that makes plans
            os.sched_setscheduler(os.getpid(), os.SCHED_IDLE, os.sched_param(0))
    _leave_session()
    if not over.wait(_FINISHED):
        os._exit(0)


def _leave_session() -> None:
    """Give this process a session of its own, of the lowest priority.

    Linux shares the processors first among sessions, and then by priority within each (sched(7), "The
    autogroup feature").  The idle policy only makes way for programs of the same session: programs of other
    sessions would get half of a processor.
    """
    with suppress(OSError):
        os.setsid()
        for _ in range(_TRIES):
            try:
                Path("/proc/self/autogroup").write_text("19")
                return
            except BlockingIOError:  # another session has been changed in the last tenth of a second
                time.sleep(0.1)


def _write_held(inside: str | None = None) -> None:
    with suppress(Exception):  # a folder that is full, say
        write_held(inside)


def _serve_program(program: socket.socket, chores: Iterator[bool]) -> list[requests.Request]:
    """Answer a program's requests until it leaves or has sent nothing for `IDLE` seconds; return the requests
    whose plans are still to be made for later runs.  ``chores`` are done while there is no request."""
    while True:
        with suppress(Exception):  # what is wrong here, requests are told
            while not _is_ready(program, 0) and next(chores, False):
                pass
        if not _is_ready(program, IDLE):
            return []
        request = _received(program)
        if request is None or isinstance(request, list):
            return request or []
        disk_store.make_folder(request.cache_dir)  # in which what comes later is kept
        if request.cache_dir:
            _write_held(request.cache_dir)  # an earlier run's: this program is there, and so is the folder
        _send(program, message(_stored(request) or _new(request)))


def _stored(request: requests.Request | requests.RoutineRequest) -> tuple[Any, ...] | None:
    """Return the reply to a request for a plan that is stored in the cache folder, or None."""
    with suppress(Exception):  # without the folder
        plan = None if isinstance(request, requests.RoutineRequest) else disk_store.load_bytes(request, True)
        if plan is not None:
            error = disk_store.refusal(plan)
            return ("untraceable", error.reason, error.line) if error else ("plan", plan, None, [], [])
    return None


def _new(request: requests.Request | requests.RoutineRequest) -> tuple[Any, ...]:
    """Return the reply to a request, and store it."""
    reply = _finished.pop((request.text(), request.cache_dir), None) or answer(request)
    with suppress(Exception):  # if the folder fails, the next process plans again
        save_reply(request, reply)  # before the reply, with which the program may be done, and its folder
    return reply


_finished: dict[tuple[str, str | None], tuple[Any, ...]] = {}
# Replies to requests that a program has left: its next run may have asked for one before it was stored.


def finish(left: list[requests.Request]) -> Iterator[bool]:
    """Make and store, for a program's next run, the plans that it requested but did not wait for; yield True
    after each, so that the caller may do other work in between."""
    _finished.clear()
    end = time.monotonic() + _FINISHING
    for request in left:
        if time.monotonic() < end and disk_store.load_bytes(request, True) is None:
            _finished[request.text(), request.cache_dir] = reply = answer(request)
            save_reply(request, reply)
            yield True


def _next_program(
    place: str, chores: Iterator[bool], left: Iterator[bool], over: threading.Event
) -> socket.socket | None:
    """Return a connection to the next program, or None if none comes for a while.  Meanwhile do the work of
    ``chores`` and ``left``, and set ``over`` when it is done."""
    import resource

    from .idle_planners import Offer

    offer = None
    if place and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < _MOST_MEMORY:
        with suppress(OSError):  # there is another one already
            offer = Offer(place)
    try:
        for work in (chores, left):
            more = True
            while more:
                with suppress(Exception):  # the folder is gone, say
                    if offer is not None and (program := offer.program(0)) is not None:
                        return program
                    more = next(work, False)
        over.set()
        if offer is None or (program := offer.program(_SETTLED)) is not None:
            return None if offer is None else program
        _write_held()
        return offer.program(IDLE)
    finally:
        over.set()
        if offer is not None:
            offer.end()


_MAKERS = (
    "dcarray.ir.passes.cpu.pipeline", "dcarray.lowering.compilation", "llvmlite.binding",
    "dcarray.lowering.cpu.llvm.target", "dcarray.lowering.program.serialise", "dcarray.ir.build",
)  # fmt: skip
"""The modules that most plans need; importing them takes most of the time until the first plan is made."""
_FIRST = """region() {
  in A: f64[9];  out B: f64[9]
  B[i] = subtract(multiply(A[i], 0.0123456789), A[i]) for i<9
}
"""


def warm_up() -> Iterator[bool]:
    """Prepare for the first plan, step by step; yield True after each step but the last.  The steps import
    modules, look at the processor, and make a small plan."""
    for name in _MAKERS:
        import_module(name)
        yield True
    open_door("tracer")
    yield True
    from dcarray.ir.text import parse
    from dcarray.lowering.cpu.llvm.object_code import engine

    engine.machine()
    yield True
    answer(requests.RegionRequest(parse(_FIRST), False, 1, None))
    gc.freeze()  # what is there now stays, and is not gone through again
    gc.enable()


def _is_ready(program: socket.socket, seconds: float) -> bool:
    """Whether a program sends something, or leaves, within ``seconds``."""
    return bool(select.select([program], [], [], seconds)[0])


def answer(request: requests.Request | requests.RoutineRequest) -> tuple[Any, ...]:
    """Return the reply to a request: ``("plan", plan, counts, reasons, warnings)``, ``("code", parts)``,
    ``("wrong", kind, text)``, or ``("untraceable", reason, line)``.

    ``counts`` are the numbers of kernels compiled, found in memory and found on disk; ``reasons`` say why
    statements are left to the interpreter; ``kind`` is the name of an exception.
    """
    from dcarray.lowering.program.serialise import serialised

    reasons: list[str] = []
    try:
        if isinstance(request, requests.RoutineRequest):
            return "code", request.code()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = requests.make_plan(request, lambda reason, _: reasons.append(reason))
            plan = serialised(result.plan, result.relations, result.payload)
    except Untraceable as error:
        return "untraceable", error.reason, error.line
    except Exception as error:
        return "wrong", type(error).__name__, str(error)
    texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
    return "plan", plan, (result.compiled, result.hits, result.disk_hits), reasons, texts


def save_reply(request: requests.Request | requests.RoutineRequest, reply: tuple[Any, ...]) -> None:
    """Store a reply in the cache folder for later processes, unless its plan leaves statements uncompiled."""
    if reply[0] == "code":
        disk_store.save(request, pickle.dumps(reply[1], protocol=5))
    elif reply[0] == "plan" and not reply[3]:
        disk_store.save(request, reply[1])
    elif reply[0] == "untraceable":
        disk_store.save(request, Untraceable(*reply[1:]))


def _received(program: socket.socket) -> Any:
    """Return the content of the next message of a program; None if the program has left."""
    with suppress(OSError):
        head = program.recv(HEAD)
        if len(head) == HEAD:
            size, data = int.from_bytes(head, "little"), bytearray()
            while len(data) < size and (part := program.recv(size - len(data))):
                data += part
            if len(data) == size:
                return pickle.loads(data)
    return None


def _send(program: socket.socket, data: bytes) -> None:
    """Send data to a program; if it has left, do nothing."""
    with suppress(OSError):
        program.sendall(data)
