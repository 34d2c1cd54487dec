"""Real processes under MPI that fail, diverge or end early: all end, with the reason, and none hangs."""

import re
from pathlib import Path

import pytest
from launching import launch, needs_mpi

SUM = r"allreduce\(sum, \(\), float64\)"

# Program: exit status (None: any but 0), what standard error says, and how many ranks end normally.
FAILING: dict[str, tuple[int | None, list[str], int]] = {
    "diverging": (
        1,
        [
            r"(?s)(MismatchError: ranks 0, 2 call allreduce\(sum, \(3,\), float64\) \(.*failures.py:\d+\) "
            r"where rank 1 calls allreduce\(max, \(3,\), float64\) \(.*mpi_failures.py:\d+\).*){3}"
        ],
        0,
    ),
    "shapes": (1, [r"ranks 0-1 call .*\(3,\).* where rank 2 calls .*\(4,\)"], 0),
    "steps": (1, [r"MismatchError: rank 0 calls run\(190\) .* where ranks 1-2 call run\(-190\)"], 3),
    "sharing": (1, [r"MismatchError: rank 0 calls run\(10\) .* where ranks 1-2 call run\(-10\)"], 0),
    "one_step_more": (1, [r"rank 1 has ended and would wait for the other ranks to call run\(10\)"], 3),
    "once_more": (1, [rf"rank 1 waits for the other ranks to call {SUM} \(.*py:\d+\)", "0 has ended"], 2),
    "leaving": (1, [r"rank 1 has ended\n", rf"rank 0 waits for the other ranks to call {SUM}"], 1),
    "leaving_a_receiver": (1, [r"rank 1 waits for the receive from rank 0 of 16 bytes"], 2),
    "receiving": (1, [r"rank 0 waits for the receive from rank 1", r"rank 2 waits for .* rank 0"], 0),
    "rows": (1, [r"(?s)(MismatchError: rank 0 calls allreduce.* where rank 1 calls bcast.*){3}"], 0),
    "recording": (
        1,
        [
            r"(?s)(MismatchError: ranks 0, 2 call run\(.*mpi_failures.py:\d+\) where rank 1 calls run\("
            r".*mpi_failures.py:\d+\).*){3}"
        ],
        0,
    ),
    "functions": (1, [r"ranks 0, 2 call sort\(.* where rank 1 calls unique\("], 0),
    "places": (1, [r"rank 0 calls getitem\(.*\(1, 2\)\) .* where rank 1 .* where rank 2"], 0),
    "going_on": (1, ["(MismatchError|DeadlockError)"], 3),
    "gathering": (1, [r"(?s)(ranks 0, 2 call allreduce.* where rank 1 calls gather\(\(600,\)\).*){3}"], 0),
    "threads": (
        1,
        [
            r"MismatchError: ranks 0, 2 call from thread 'two', where only one thread of a rank may work on "
            r"arrays in blocks at a time.* where rank 1 calls from thread 'one'"
        ],
        3,
    ),
    "thread_beside": (1, [r"ranks 0, 2 call .* where rank 1 calls from thread 'one', where only one"], 0),
    "threads_alike": (
        0,
        [r"(?s)(RuntimeError: several threads named 'one' work on arrays in blocks: ranks tell.*){6}"],
        3,
    ),
    "groups": (1, [r"rank 0 waits for the receive from rank 2", r"rank 2 waits for .* bcast\(0"], 0),
    "raising": (
        1,
        [
            r"rank 1 of 3 failed:\nTraceback(.*\n)+ZeroDivisionError: on purpose",
            r"rank 0 of 3 ended at .*mpi_failures.py:\d+: rank 1 failed\n",
            r"rank 2 of 3 ended at .*mpi_failures.py:\d+: rank 1 failed\n",
        ],
        0,
    ),
    "caught": (1, [r"rank 1 of 3 failed:\nTraceback"], 2),
    "raising_in_a_group": (1, [r"KeyError: 'on purpose'", "rank 0 of 3 ended", "rank 1 of 3 ended"], 0),
    "busy": (1, [r"ZeroDivisionError", "rank 0 of 3 ended", "rank 2 of 3 ended"], 0),
    "exiting": (3, [r"rank 0 of 3 ended at .*: rank 1 has ended all with status 3 \(.*py:\d+\)"], 0),
    "interrupted": (130, [r"rank 1 of 3 failed:\nTraceback(.*\n)+KeyboardInterrupt", "rank 2 of 3 ended"], 0),
    "gone": (None, [], 0),
    "objects": (1, [r"where rank 2 calls allreduce\(sum, \(1,\), object\)"], 0),
    "distributed": (1, [r"(?s)(ranks disagree on what is to be distributed.*){3}"], 0),
}


@needs_mpi
@pytest.mark.parametrize("name", FAILING)
def test_all_end_with_the_reason(name: str) -> None:
    status, said, ended = FAILING[name]
    done = launch(3, "-m", "mpi_failures", name, timeout=60)
    assert done.returncode == status or (status is None and done.returncode), done.stderr
    for pattern in said:
        assert re.search(pattern, done.stderr), done.stderr
    assert done.stdout.count("ended") == ended
    if name == "caught":
        for rank in (0, 2):
            assert f"rank {rank} cleaned up; True" in done.stdout
            assert f"rank {rank} is told again" in done.stdout
    if name == "objects":
        assert done.stdout.count("references into this process") == 6


@needs_mpi
@pytest.mark.parametrize("name", ["waiting_for_long", "exiting_early", "exit_caught", "threads_in_turn"])
def test_nothing_is_wrong(name: str) -> None:
    done = launch(3, "-m", "mpi_failures", name, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.count("through") == {"exiting_early": 1, "exit_caught": 3, "threads_in_turn": 3}.get(
        name, 0
    )


@needs_mpi
def test_without_the_watch_an_exception_still_ends_all() -> None:
    done = launch(3, "-m", "mpi_failures", "raising", timeout=60, DCARRAY_WATCH="0")
    assert done.returncode == 1
    assert "ZeroDivisionError: on purpose" in done.stderr


@needs_mpi
def test_mpi_that_is_not_initialised() -> None:
    line = "import mpi4py; mpi4py.rc.initialize = False; import dcarray as dc; dc.comm.world()"
    done = launch(2, "-c", line, timeout=60)
    assert done.returncode == 1
    assert "CommError: MPI is not initialised" in done.stderr


@needs_mpi
@pytest.mark.parametrize(("fails", "status", "said"), [
    ("1 / 0", 1, "rank 1 of 3 failed:\nTraceback"),
    ("sys.exit(3)", 3, "rank 1 has ended all with status 3"),
    ("raise KeyboardInterrupt", 130, "rank 1 of 3 failed:\nTraceback"),
])  # fmt: skip
def test_scripts_that_are_run(tmp_path: Path, fails: str, status: int, said: str) -> None:
    script = tmp_path / "script.py"
    lines = ["import sys", "from dcarray import comm", "world = comm.world()", "if world.rank == 1:"]
    script.write_text("\n".join([*lines, f"    {fails}", "world.barrier()"]))
    done = launch(3, "-m", "dcarray", "run", str(script), timeout=60)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert f"rank 0 of 3 ended at {script}:6" in done.stderr


CHECKED = """
import numpy as np
import dcarray as dc

@dc.accelerate
def smooth(u):
    v = np.zeros_like(u)
    v[1:-1] = (u[:-2] + u[2:]) / 2
    kinds.append(type(v))
    return v

kinds = []
u = np.arange(2_000_000.0)
found = smooth(u)
if dc.comm.world().rank == 0:
    wanted = np.zeros_like(u)
    wanted[1:-1] = (u[:-2] + u[2:]) / 2
    print(kinds[0].__module__, np.array_equal(found, wanted), wanted[-2])
"""


@needs_mpi
@pytest.mark.parametrize("command", [(), ("-m", "dcarray", "run", "--report")])
def test_a_script_of_which_one_rank_checks_the_results(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "script.py").write_text(CHECKED)
    done = launch(2, *command, str(tmp_path / "script.py"), timeout=60)
    assert (done.returncode, done.stdout) == (0, "dcarray.api.array True 1999998.0\n"), done.stderr
    assert ("all of a file that imports dcarray or mpi4py" in done.stderr) is bool(command)
