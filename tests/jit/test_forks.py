"""Forks in any thread: the child has no lock of another thread, and its compiled code works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
