"""Forks in any thread: the child has no lock of another thread, and its compiled code works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fresh import python

PROGRAM = """
import faulthandler, os, signal, threading
import numpy as np

def loop(x, n):
    t = 0.0
    for i in range(n):
        t += x[i % x.size] * (i % 3)
    return t

def child(k):
    x = np.arange(100.0 + k)
    y = np.cos(np.arange(40_000.0 + k))
    for _ in range(3):
        y[1:-1] = 0.25 * (y[:-2] + 2 * y[1:-1] + y[2:])
    return float(loop(x, 20_000)), round(float(y.sum()), 7)

def forks(ended):
    for k in range(8):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            faulthandler.dump_traceback_later(50)
            child(k)
            os._exit(7)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

ended = []
thread = threading.Thread(target=forks, args=(ended,))
thread.start()
print([child(k) for k in range(12)])
thread.join()
print(ended)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("jit", ["eager", "background"])
def test_a_thread_forks_while_another_one_compiles(jit: str, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(PROGRAM)
    environment = os.environ | {"DCARRAY_JIT": jit, "DCARRAY_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for how in ([], ["-m", "dcarray", "run"]):
        command = [sys.executable, *how, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1], done.stderr
    assert said[0].splitlines()[-1] == str([7] * 8)


HANDLERS = """
import os, signal

seen = []

def handle(n=20):
    total = 0
    while total < n:
        total += 1 if total % 3 else 2
    for name in ("a", "b"):
        seen.append(name + str(total))

os.register_at_fork(before=lambda: handle(), after_in_child=lambda: handle(30))

import dcarray as dc  # its own handlers are called first before a fork, and last after it

handle = dc.accelerate(handle)
for k in range(3):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        print(seen[-2:], flush=True)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen, flush=True)
    handle(100 + k)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_handlers_of_forks_may_be_accelerated(tmp_path: Path) -> None:
    script = tmp_path / "handlers.py"
    script.write_text(HANDLERS)
    said = []
    for jit in ("off", "eager"):
        environment = os.environ | {"DCARRAY_JIT": jit, "DCARRAY_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=240
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert said[0].count("7 [") == 3


IN_SIGNALS = """
import os, signal, threading

def handle(*_):
    fork()

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

import dcarray.lowering.runtime.forks as forks

lock = forks.held_in_forks(threading.Lock())
taken = forks._taken
forks._taken = lambda order: taken(order) and (signal.raise_signal(signal.SIGUSR1) or True)
signal.signal(signal.SIGUSR1, handle)
for _ in range(3):
    fork()
print(forks.HELD, forks._OWN.depth)
"""
WHILE_IMPORTING = {
    "importing.py": """
import os, threading, time

def fork():
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print(time.monotonic() - begin < 4)

thread = threading.Thread(target=fork)
thread.start()
thread.join()
""",
    "main.py": "import dcarray.lowering.runtime.parsing, importing",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize(("files", "said"), [
    ({"main.py": IN_SIGNALS}, "[] 0\n"), (WHILE_IMPORTING, "True\n"),
])  # fmt: skip
def test_forks_wait_for_nothing_of_their_own(files: dict[str, str], said: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = python("main.py", status=None, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (said, "")
