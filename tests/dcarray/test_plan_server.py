"""Plans that come from another process."""

import gc
import itertools
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.core import cores
from dcarray.core.errors import Untraceable
from dcarray.execution import executor
from dcarray.lowering.cpu.schedules import scheduler
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.program import loaded_plan, serialise
from dcarray.lowering.runtime import disk
from dcarray.plans import client, disk_store, idle_planners, server, server_handle
from dcarray.plans.log_requests import LogRequest
from dcarray.recording import session

HERE = {"eager_below": 0, "jit": "eager"}
THERE = {"eager_below": 0, "jit": "background", "cache_dir": None}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No plan is known from another test."""
    dc.evaluate()
    engine = executor.Executor()
    monkeypatch.setattr(session, "EXECUTOR", engine)
    yield engine
    engine.background.wait()


def program(x, y, w, n):
    """Statements of every kind, of sizes that change."""
    a = np.exp(x[:n]) * 2 + y[:n]
    x += 1
    x[1:n] = x[: n - 1] * 0.5
    b = np.where(a[: n // 2 * 2] > 3, x[: n // 2 * 2], -y[: n // 2 * 2]).reshape(2, -1)
    t = b.T @ w
    i = (a * 10).astype(np.int32) // 3
    d = np.trunc(np.einsum("ii->i", w[:, :2]) / 7)
    return a, b, t, i, d, b.sum(axis=0), t.max(axis=1), np.cos(a), np.sqrt(a + 1j), (x > y).any(axis=0)


def agree():
    for n in (24, 24, 22, 20, 18, 24):
        rng = np.random.default_rng(3)
        plain = rng.random(24), rng.random(24), rng.random((2, 6))
        ours = [dc.asarray(a.copy()) for a in plain]
        want, got = program(*plain, n), program(*ours, n)
        for a, b in zip([*want, *plain], [*got, *ours], strict=True):
            b = np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(b, a, rtol=1e-13)
        session.EXECUTOR.background.wait()


def test_a_plan_is_the_same_after_a_journey(monkeypatch):
    opened = []

    def travelled(*made):
        opened.append(loaded_plan.deserialised(serialise.serialised(*made)))
        return opened[-1]

    monkeypatch.setattr(serialise, "in_process", travelled)
    with dc.options(**HERE):
        agree()
    assert len(opened) == 2 and opened[1].guard is not None


def test_what_is_left_to_the_interpreter_travels_too(monkeypatch):
    def refuse(*args):
        raise Unsupported("for this test")

    plain = serialise.serialised
    monkeypatch.setattr(scheduler, "schedule", refuse)
    monkeypatch.setattr(serialise, "in_process", lambda *made: loaded_plan.deserialised(plain(*made)))
    with dc.options(**HERE):
        agree()


def test_a_target_of_its_own_stays():
    class Launch:
        pack = None

    made = type("Plan", (), {"driver": "", "things": {"_k0": Launch()}, "range_check": None})
    with pytest.raises(loaded_plan.NotPortable, match="one process only"):
        serialise.serialised(made, [])


def test_plans_come_from_the_server(fresh):
    dc.report(reset=True)
    with dc.options(**THERE):
        for _ in range(3):
            agree()
        assert dc.report().kernels > 0
        dc.report(reset=True)
        agree()
    assert dc.report().interpreted == 0 and not dc.report().fallbacks


def test_a_server_that_dies_is_started_again():
    with dc.options(**THERE):
        agree()
        assert client.CLIENT._process is not None
        client.CLIENT._close()
        x = dc.asarray(np.arange(40.0))
        dc.report(reset=True)
        for _ in range(3):
            np.testing.assert_array_equal(
                np.asarray(x * 5 - x / 7), np.arange(40.0) * 5 - np.arange(40.0) / 7
            )
            session.EXECUTOR.background.wait()
    assert dc.report().kernels == 1


def test_a_server_that_ends_with_a_request_in_hand(monkeypatch):
    """The region stays with NumPy, and nothing else is harmed."""
    monkeypatch.setattr(client, "CLIENT", client.PlanningClient())
    monkeypatch.setattr(executor, "_reported", set())
    lost = server.command().replace(
        "serve()", "import dcarray.plans.server as s; s.answer = lambda r: os._exit(3); serve()"
    )
    monkeypatch.setattr(server, "command", lambda nice: lost)
    with dc.options(**THERE), pytest.warns(RuntimeWarning, match="a region is not compiled.* has ended"):
        x = dc.asarray(np.arange(41.0))
        for _ in range(4):
            np.testing.assert_array_equal(np.asarray(x * 5 - 3), np.arange(41.0) * 5 - 3)
            session.EXECUTOR.background.wait()


def test_a_server_that_has_ended_before_the_first_request_is_started_again(monkeypatch):
    """As one that was started, and had nothing to do for long."""
    monkeypatch.setattr(client, "CLIENT", client.PlanningClient())
    short = server.command().replace(
        "serve()", "import dcarray.plans.server as s; s.IDLE, s.warm_up = 0.0, lambda: iter(()); serve()"
    )
    with monkeypatch.context() as other:
        other.setattr(server, "command", lambda nice: short)
        client.CLIENT.start()
    poll = select.poll()
    poll.register(client.CLIENT._process._socket, select.POLLRDHUP)
    assert poll.poll(60_000)
    dc.report(reset=True)
    with dc.options(**THERE):
        x = dc.asarray(np.arange(42.0))
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x * 5 - 3), np.arange(42.0) * 5 - 3)
            session.EXECUTOR.background.wait()
    assert dc.report().kernels


def test_a_server_warms_up(monkeypatch):
    """All of it works: where something fails, it costs the time of the first plan, and nobody notices."""
    replies, plain = [], server.answer
    monkeypatch.setattr(server, "answer", lambda request: replies.append(plain(request)))
    before = gc.get_freeze_count()  # Python 3.12 itself begins with some
    try:
        assert set(server.warm_up()) == {True}
        assert gc.get_freeze_count() > before + 1000 and gc.isenabled()
    finally:
        gc.unfreeze()
    assert [reply[0] for reply in replies] == ["plan"]


def test_a_started_server_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(client, "CLIENT", client.PlanningClient())
    monkeypatch.setattr(server_handle, "STARVED_AFTER", 60.0)
    client.CLIENT.start()
    process = client.CLIENT._process
    assert process is not None and not process.has_begun
    client.CLIENT.start()
    assert client.CLIENT._process is process
    with dc.options(**THERE):
        x = dc.asarray(np.arange(44.0))
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x * 6 - 5), np.arange(44.0) * 6 - 5)
            session.EXECUTOR.background.wait()
    assert client.CLIENT._process is process and process.has_begun


SLEEPS = (
    "import dcarray.plans.server as s, time; a = s.answer; "
    "s.answer = lambda r: time.sleep(9) or a(r); serve()"
)


@pytest.mark.parametrize("starved", ["while it begins", "with a request in hand"])
def test_a_server_that_gets_no_processor_is_replaced_by_one_that_takes_its_share(monkeypatch, starved):
    """Both here only look as if: one has had no time since it has done nothing yet, one sleeps."""
    monkeypatch.setattr(client, "CLIENT", client.PlanningClient())
    began, plain = [], server.command

    def command(nice):
        began.append(nice)
        words = plain(nice)
        return words.replace("serve()", SLEEPS) if nice and starved != "while it begins" else words

    monkeypatch.setattr(server, "command", command)
    if starved == "while it begins":
        monkeypatch.setattr(server_handle, "STARVED_AFTER", -1.0)
    with dc.options(**THERE):
        x = dc.asarray(np.arange(43.0))
        dc.report(reset=True)
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x * 6 - 3), np.arange(43.0) * 6 - 3)
            session.EXECUTOR.background.wait()
        agree()
    assert dc.report().kernels and began == [server.NICE, 0]
    process = client.CLIENT._process
    assert os.getpriority(os.PRIO_PROCESS, process._pid) == os.getpriority(os.PRIO_PROCESS, 0)


def test_at_the_end_of_the_program_nobody_waits_for_a_reply(monkeypatch):
    """What the server is told then still reaches it."""
    monkeypatch.setattr(server_handle, "_LOOK", 60_000)
    process = object.__new__(server_handle.PlanningProcess)
    process._nice, process._lost, process._stopping, process._pid = server.NICE, 0.0, lambda: True, 0
    process._socket, other = socket.socketpair()
    read = []
    waits = threading.Thread(target=lambda: read.append(process._read(1)))
    waits.start()
    process.wake()
    waits.join(20)
    process.finish(b"left")
    with other:
        assert read == [b""] and other.recv(9) == b"left"


@pytest.mark.parametrize(
    ("program", "planner", "nice"), [(1.4, 0.6, server.NICE_ALONE), (1.4, 0.1, 0), (1.0, 0.1, 0)]
)
def test_a_server_that_loses_its_time_to_the_program_itself_is_not_starved_by_others(
    monkeypatch, program, planner, nice
):
    """The program, on two processors, uses one and a part of the other one, and the server what is left."""
    now = [0.0]

    def passes(share):
        now[0] += 0.01
        return share * now[0]

    clock = types.SimpleNamespace(monotonic=lambda: passes(1.0), process_time=lambda: passes(program))
    monkeypatch.setattr(server_handle, "unpatched", clock)
    monkeypatch.setattr(server_handle.PlanningProcess, "processor_seconds", lambda self: passes(planner))
    monkeypatch.setattr(server_handle, "cores", types.SimpleNamespace(available=lambda: 2))
    monkeypatch.setattr(server_handle, "_LOOK", 0)
    process = object.__new__(server_handle.PlanningProcess)
    process._nice, process._lost, process._stopping = server.NICE, 0.0, lambda: False
    process._socket, other = socket.socketpair()
    with process._socket, other, pytest.raises(server_handle.Starved) as starved:
        process._read(1)
    assert starved.value.nice == nice


def test_where_nobody_says_how_much_processor_time_a_server_had_it_stays(monkeypatch):
    now, looks = itertools.count(), itertools.count()

    def unknown(clock):
        raise OSError

    clock = types.SimpleNamespace(monotonic=lambda: next(now) / 100, process_time=lambda: 0.0)
    monkeypatch.setattr(server_handle, "unpatched", clock)
    monkeypatch.setattr(server_handle, "time", types.SimpleNamespace(clock_gettime=unknown))
    monkeypatch.setattr(server_handle, "_LOOK", 0)
    process = object.__new__(server_handle.PlanningProcess)
    process._nice, process._lost, process._pid = server.NICE, 0.0, 1
    process._stopping = lambda: next(looks) > 200
    process._socket, other = socket.socketpair()
    with process._socket, other:
        assert process._read(1) == b""
    assert next(now) / 100 > 10 * server_handle.STARVED_AFTER


def test_what_has_the_descriptor_of_a_connection_now_is_not_touched():
    process = object.__new__(server_handle.PlanningProcess)
    process._nice, process._lost, process._pid, process._stopping = 0, 0.0, 0, lambda: False
    process.has_begun = True
    connection, theirs = socket.socketpair()
    mine, other = socket.socketpair()
    process._connect(socket.socket(fileno=connection.detach()))
    number = process._socket.fileno()
    with theirs, mine, other:
        os.dup2(mine.fileno(), number)  # as after `os.closerange`, when the program opens another file
        mine.sendall(b"abc")
        for _ in range(2):
            assert process._read(3, 1.0) == b"" and process.ask(b"data") is None
            process.finish(b"data")
            process.wake()
            process.close()
        os.write(number, b"de")  # it is still open
        os.close(number)
        other.setblocking(False)
        assert other.recv(100) == b"abcde"


@pytest.mark.parametrize("words", ["raise SystemExit", "import os; os.write(0, b'x' * 99)", None, signal])
def test_without_a_server_a_thread_compiles(monkeypatch, words, tmp_path):
    monkeypatch.setattr(client, "CLIENT", client.PlanningClient())
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where no planning process waits
    if words is None:
        monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    elif words is signal:  # the program has a handler of SIGCHLD, which is to see no other children
        monkeypatch.setattr(signal, "getsignal", lambda number: print)
    else:
        monkeypatch.setattr(server, "command", lambda nice: words)
    with dc.options(**THERE), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = dc.asarray(np.arange(42.0))
        dc.report(reset=True)
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x * 6 - 3), np.arange(42.0) * 6 - 3)
            session.EXECUTOR.background.wait()
    assert dc.report().kernels == 1
    assert not client.CLIENT._usable


def test_a_region_that_cannot_be_planned_there():
    kind, name, text = server.answer(LogRequest((("nonsense",),), (), "", (), (), (), False, 1, None))
    assert (kind, name) == ("wrong", "ValueError") and "nonsense" in text


CHILD = """
    import os, sys, numpy as np, dcarray as dc
    from dcarray.plans import client, server_handle
    from dcarray.execution.executor import EXECUTOR
    server_handle.STARVED_AFTER = float("inf")  # a second process would find the plans of the first on disk
    with dc.options(eager_below=0, jit="background", cache_dir=sys.argv[1]):
        x = dc.asarray(np.arange(60.0).reshape(6, 10))
        for k in (3, 3, 4, 5, 5):
            np.asarray(np.sqrt(x[:, k:] * 2 + 1).sum(axis=1) + x[:, 0])
            EXECUTOR.background.wait()
    r = dc.report()
    low = "dcarray.lowering"
    makers = {"dcarray.ir.nodes", f"{low}.cpu.llvm.emitter", f"{low}.plan"}
    loaded = not makers.isdisjoint(sys.modules), "llvmlite.binding" in sys.modules
    print(r.kernels > 0, r.compiles > 0, *loaded)
    print(r.disk_hits > 0, client.CLIENT._process is not None, r.kernels)
    try:
        print(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("no children")
"""


LINKED = sys.platform == "linux" and platform.machine() == "x86_64"  # without LLVM, see `objects.link`


def child(folder):
    words = [sys.executable, "-c", textwrap.dedent(CHILD), folder]
    alone = {**os.environ, "TMPDIR": "/nowhere"}  # no planning process of another test is found
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=alone)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def left(folder):
    """The plans in a folder and the digest of the source they depend on, once the other process has left
    both there: it answers first.

    They are there when they have their names, digests; before, they are half written.
    """
    before: list[Path] = []
    for _ in range(100):
        found = sorted((folder / "plans").glob(f"{'[0-9a-f]' * 64}.dcarray"))
        if len(found) > 1 and found == before:
            return found
        before = found
        time.sleep(0.3)
    raise AssertionError("nothing is left")


def test_the_program_has_neither_what_makes_plans_nor_llvm_nor_a_child():
    lines = child("")
    assert lines[0] == f"True True False {not LINKED}" and lines[2] == "no children"


def test_the_next_process_finds_the_plans(tmp_path):
    first = child(str(tmp_path))
    left(tmp_path)
    second = child(str(tmp_path))
    assert first[0].startswith("True True") and first[1].startswith("False True")
    llvm = not (LINKED and Path("/proc/cpuinfo").exists())  # which else says what the processor is
    assert second[0] == f"True False False {llvm}" and second[1].startswith("True False")
    assert int(second[1].split()[-1]) > int(first[1].split()[-1])  # from the first sight on


def negated(folder):
    """A request for the plan of a negation of five floats, to be left in a folder."""
    log = (("old", "d", (5,), None, 0), ("new", "d", (5,), 1),
           ("map", "negative", "d->d", (5,), 1, None, (0, None, None)))  # fmt: skip
    return LogRequest(log, (1,), "", (5, 5, 5), (5, 5, 5), (), False, 1, str(folder))


def test_what_another_processor_has_left_is_not_used(tmp_path, monkeypatch):
    from dcarray.lowering.cpu import machine_fingerprint

    request = negated(tmp_path)
    assert disk_store.load_plan(request) is None
    disk_store.save(request, server.answer(request)[1])
    found = disk_store.load_plan(request)
    assert found is not None and found.kernels == 1
    assert disk_store.load_plan(request._replace(fastmath=True)) is None
    monkeypatch.setattr(machine_fingerprint, "machine_fingerprint", lambda: "f" * 16)
    assert disk_store.load_plan(request) is None


def test_what_has_been_answered_is_left_but_not_what_is_not_whole(tmp_path):
    request = negated(tmp_path)
    reply = server.answer(request)
    assert reply[0] == "plan" and reply[3] == []
    for refused in (("wrong", "ValueError", "no"), (*reply[:3], ["a reason"], [])):
        server.save_reply(request, refused)
        assert not (tmp_path / "plans").exists()
    server.save_reply(request, ("untraceable", "no", 3))
    assert server._stored(request) == ("untraceable", "no", 3)
    with pytest.raises(Untraceable, match="no"):
        disk_store.load_plan(request)
    server.save_reply(request, reply)
    assert len(left(tmp_path)) == 2 and disk_store.load_plan(request) is not None


def test_a_large_region_waits_for_the_plan_that_is_there(tmp_path, monkeypatch):
    with dc.options(**{**THERE, "cache_dir": str(tmp_path)}):
        for large in (False, True):
            monkeypatch.setattr(executor, "NANOSECOND", 1.0 if large else 1e-9)
            engine = executor.Executor()
            monkeypatch.setattr(session, "EXECUTOR", engine)
            dc.report(reset=True)
            for _ in range(1 if large else 2):
                got = np.asarray(dc.asarray(np.arange(9.0)) * 7 - 2)
                np.testing.assert_array_equal(got, np.arange(9.0) * 7 - 2)
            engine.background.wait()
            left(tmp_path)
            assert dc.report().kernels == large


LEAVES = """
    import os, sys, numpy as np, dcarray as dc
    from dcarray.plans import client
    from dcarray.execution.executor import EXECUTOR
    client._nice = lambda: 1
    with dc.options(eager_below=0, jit="background", cache_dir=None):
        x = dc.asarray(np.arange(60.0))
        for k in range(3):
            np.asarray(x * int(sys.argv[1]) + 1)
            EXECUTOR.background.wait()
    print(dc.report().kernels > 0, client.CLIENT._process._pid)
"""


def test_two_programs_at_once_have_a_planning_process_each():
    first, second = (server_handle.PlanningProcess(0, lambda: False) for _ in range(2))
    for process in (first, second):
        process.begin()
    assert first._pid != second._pid
    for process in (first, second):
        process.close()


@pytest.fixture
def short_folder(monkeypatch):
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder


@pytest.mark.parametrize("state", ["ready", "starting", "waited for"])
def test_plans_of_a_program_that_has_ended_are_made_for_the_next_run(
    tmp_path, short_folder, state, monkeypatch
):
    # In a place of its own: a program that takes the process over would end the work on them.  It does not
    # give way to others here: on a busy machine it would end without having made them.
    plain, first = server.command, "from dcarray.plans import server; server._watch = lambda *given: None; "
    monkeypatch.setattr(
        server, "command", lambda nice: plain(nice).replace("from dcarray", first + "from dcarray", 1)
    )
    monkeypatch.setattr(server_handle, "_LOOK", 0)
    asked = [negated(tmp_path), negated(tmp_path)._replace(fastmath=True)]
    process = server_handle.PlanningProcess(0, lambda: state == "waited for")
    if state == "ready":
        process.begin()
    elif state == "waited for":  # by a thread of a program that ends
        with pytest.raises(server_handle.NoPlanningProcess):
            process.begin()
    disk_store.make_folder(str(tmp_path))
    process.finish(server.message(asked))
    for _ in range(3000):
        if all(disk_store.load_plan(request) is not None for request in asked):
            break
        time.sleep(0.01)
    else:
        raise AssertionError("they are not made")


SLOW = "import time; from dcarray.plans import server; server.answer = lambda _: time.sleep(60); "


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="there is no policy of idle processes")
def test_a_planning_process_gives_way_when_its_program_has_left(tmp_path, monkeypatch):
    plain = server.command
    monkeypatch.setattr(
        server, "command", lambda nice: plain(nice).replace("from dcarray", SLOW + "from dcarray", 1)
    )
    process = server_handle.PlanningProcess(0, lambda: False)
    process.begin()
    assert os.sched_getscheduler(process._pid) == os.SCHED_OTHER
    disk_store.make_folder(str(tmp_path))
    process.finish(server.message([negated(tmp_path)]))
    try:
        for _ in range(1000):
            if os.sched_getscheduler(process._pid) == os.SCHED_IDLE:
                break
            time.sleep(0.01)
        else:
            raise AssertionError("it has the priority of a program")
    finally:
        os.kill(process._pid, signal.SIGKILL)


def test_nothing_is_written_into_the_folder_of_a_program_that_has_just_ended(tmp_path, monkeypatch):
    """Who has run it may be removing the folder."""
    request, folder = negated(tmp_path / "kept"), tmp_path / "kept"
    monkeypatch.setattr(disk.HOLDING, "wanted", lambda: True)
    disk_store.make_folder(str(folder))
    server.save_reply(request, server.answer(request))
    assert not any((folder / "plans").iterdir()) and disk_store.load_plan(request) is not None
    other = negated(tmp_path / "removed")
    server.save_reply(other, server.answer(other))
    disk.write_held()
    monkeypatch.setattr(disk.HOLDING, "wanted", None)
    assert any((folder / "plans").iterdir()) and disk_store.load_plan(request) is not None
    assert not (tmp_path / "removed").exists() and disk_store.load_plan(other) is None


def test_what_was_left_undone_is_answered_at_once(monkeypatch, tmp_path):
    request = negated(tmp_path)
    assert list(server.finish([request])) == [True]
    assert list(server.finish([request])) == []  # it is stored
    assert not server._finished


def test_a_planning_process_serves_one_program_after_the_other(short_folder):
    told = []
    for number in range(3, 9):  # one that gets no processor for some seconds after its program ends
        done = python("-c", textwrap.dedent(LEAVES), number)
        told.append(done.stdout.split())
        if told[-2:-1] == told[-1:]:
            break
        for _ in range(1500):
            if any("." not in one.name for one in Path(short_folder).rglob("dcarray-*/*")):  # it waits
                break
            time.sleep(0.01)
    assert told[-2] == told[-1] and told[-1][0] == "True"


def test_nobody_else_may_reach_an_idle_planning_process(short_folder):
    place = idle_planners.place_of("a command")
    assert place != idle_planners.place_of("another command") and place == idle_planners.place_of("a command")
    folder = os.path.dirname(place)
    assert os.stat(folder).st_mode & 0o777 == 0o700 and idle_planners.taken_over(place) is None
    offer = idle_planners.Offer(place)
    with pytest.raises(OSError):
        idle_planners.Offer(place)
    offer.program(1).close()  # the other one has asked whether anybody waits
    connection, program = idle_planners.taken_over(place), offer.program(1)
    assert connection is not None and program is not None
    for one in (connection, program):
        one.close()
    offer.end()
    assert os.listdir(folder) == []
    assert idle_planners.taken_over(place) is None
    os.chmod(folder, 0o755)
    assert idle_planners.place_of("a command") is None


def test_the_place_of_a_planning_process_that_was_killed_is_taken(short_folder):
    place = idle_planners.place_of("a command")
    idle_planners.Offer(place)._socket.close()
    offer = idle_planners.Offer(place)
    connection = idle_planners.taken_over(place)
    assert connection is not None
    connection.close()
    offer.end()


def test_few_planning_processes_wait(short_folder, monkeypatch):
    places = [idle_planners.place_of(f"command {k}") for k in range(idle_planners._MOST_WAITING + 1)]
    offers = [idle_planners.Offer(place) for place in places[:-1]]
    with pytest.raises(OSError, match="enough"):
        idle_planners.Offer(places[-1])
    monkeypatch.setattr(idle_planners, "_OLD", -1.0)  # as if they had been killed
    with pytest.raises(OSError, match="enough"):
        idle_planners.Offer(places[-1])
    idle_planners.Offer(places[-1]).end()
    for offer in offers:
        offer.end()


def test_a_program_that_ends_waits_for_a_file_that_is_being_written(tmp_path, monkeypatch):
    folder, ended = str(tmp_path), threading.Event()
    cache = disk.DiskCache(folder)
    asked = []

    def wanted():
        asked.append(ended.is_set())
        if len(asked) == 2:  # the folder is locked
            leaving.start()
            leaving.join(0.02)
        return ended.is_set()

    def leave():
        with disk.unwritten([folder]):
            ended.set()

    leaving = threading.Thread(target=leave)
    monkeypatch.setattr(disk.HOLDING, "wanted", wanted)
    cache.write("first", b"1")
    leaving.join()
    cache.write("second", b"2")
    assert asked == [False, False, True] and disk.DiskCache(folder).read("first") == b"1"
    assert [*disk.HOLDING.held] == [(folder, "second")] and len([*tmp_path.iterdir()]) == 1
    disk.HOLDING.held.clear()


def test_what_is_held_back_is_written_for_a_program_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(disk.HOLDING, "wanted", lambda: True)
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir(mode=0o700)
        disk.DiskCache(str(folder)).write("key", b"1")
    monkeypatch.setattr(disk.HOLDING, "wanted", lambda: False)
    disk.write_held(str(folders[0]))
    assert [len([*folder.iterdir()]) for folder in folders] == [1, 0]
    disk.write_held()
    assert [len([*folder.iterdir()]) for folder in folders] == [1, 1] and not disk.HOLDING.held


def test_a_full_queue_of_an_idle_planning_process_is_not_waited_for(short_folder):
    place = idle_planners.place_of("a command")
    offer = idle_planners.Offer(place)
    waiting = [idle_planners.taken_over(place) for _ in range(3 * idle_planners._BACKLOG)]
    assert waiting[0] is not None and waiting[-1] is None
    offer.end()
    for connection in filter(None, waiting):
        connection.close()


def test_workers_have_no_more_planning_processes_than_there_are_processors(short_folder, monkeypatch):
    monkeypatch.setattr(client, "_is_worker", lambda: True)
    monkeypatch.setattr(cores, "available", lambda: 2)
    monkeypatch.setattr(client, "PlanningProcess", lambda *_: types.SimpleNamespace(close=lambda: None))
    workers = [client.PlanningClient() for _ in range(3)]
    for one in workers[:2]:
        assert one._ensure_started(0) is one._ensure_started(0)
    workers[2].start()
    with pytest.raises(client.Occupied):
        workers[2]._ensure_started(0)
    workers[0]._leave()  # as in a child of this worker
    workers[2].start()
    assert workers[2]._process is not None
    for one in workers[1:]:
        one._leave()
