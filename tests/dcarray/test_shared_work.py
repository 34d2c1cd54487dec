"""Threads that share NumPy's loops: after a fork, beside each other, and under signals."""

import os
import signal
import subprocess
import sys

import callers
import numpy as np
import pytest
from callers import together

import dcarray as dc
import dcarray.api.array  # it puts the floor under NumPy
from dcarray.core.native import BUILT

pytestmark = [
    pytest.mark.skipif(not BUILT, reason="the C module has them"),
    pytest.mark.one_process("threads of one process"),
]
FOLDERS = [os.path.dirname(__file__), os.path.dirname(callers.__file__)]  # where a child finds this file
X = np.random.default_rng(1).random((200, 1000))
PARTS = np.stack([np.exp(part) for part in X])  # each too short to be shared


def shared() -> bool:
    """Whether a call whose loop three threads share gives what calls on its parts give."""
    with dc.options(threads=3):
        return bool((np.exp(X) == PARTS).all())


def test_beside_each_other() -> None:
    """One of several callers has the threads; the others do their work by themselves."""
    wrong: list[int] = []

    def work(_: int) -> None:
        wrong.extend(k for k in range(60) if not shared())

    together(4, work)
    assert not wrong


PROGRAM = """
import os, sys
sys.path[:0] = sys.argv[1:]
from test_shared_work import shared
assert shared()
for _ in range(5):
    child = os.fork()
    if not child:
        os._exit(0 if shared() and shared() else 1)
    assert shared()
    assert os.waitpid(child, 0)[1] == 0
print("fine")
"""


def printed(program: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", program, *FOLDERS]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_children_have_threads_of_their_own() -> None:
    assert printed(PROGRAM) == "fine\n"


ALONE = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["DCARRAY_THREADS"] = "3"
sys.path[:0] = sys.argv[1:]
from test_shared_work import shared
assert all(shared() for _ in range(100))
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be kept on one processor")
def test_on_one_processor() -> None:
    assert printed(ALONE) == "fine\n"


@pytest.mark.skipif(
    not os.path.exists("/proc/self/task"), reason="nothing tells which signals a thread takes"
)
def test_signals_are_the_program_s() -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]\n"
    code += "import test_shared_work as t; assert t.shared() and t.shared(); t.blocked()"
    assert printed(code) == "2\n"


def blocked() -> None:
    """Print how many threads of this process take no interrupt."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as status:
            mask = next(line for line in status if line.startswith("SigBlk:"))
        found += int(mask.split()[1], 16) >> (signal.SIGINT - 1) & 1
    print(found)
