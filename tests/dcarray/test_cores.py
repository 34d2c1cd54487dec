"""The default number of threads: control groups, affinity, OpenMP's variable, workers of one program."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fresh import python

import dcarray as dc
from dcarray.core import config, cores


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No variable says how many threads there are, and this process is no worker; eight processors."""
    for name in ("DCARRAY_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cores, "siblings", lambda: 1)
    monkeypatch.setattr(cores, "quota", lambda: None)
    run_on(monkeypatch, 8)
    config.refresh()
    yield monkeypatch
    monkeypatch.undo()
    config.refresh()


def run_on(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Have the system say that the process may run on so many processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(many)), raising=False)
    monkeypatch.setattr(config, "_pause", 0.0)  # and the next look is due


# ---- what decides -------------------------------------------------------------------------------------
@pytest.mark.parametrize("ours, openmp, threads", [
    (None, None, 8), (None, "3", 3), (None, "12", 12), (None, "4,2", 4), ("5", "3", 5),
    (None, "", 8), (None, "many", 8), (None, "0", 8), (None, "-2", 8),
])  # fmt: skip
def test_variables_come_before_processors(environment, ours, openmp, threads):
    for name, value in (("DCARRAY_THREADS", ours), ("OMP_NUM_THREADS", openmp)):
        if value is not None:
            environment.setenv(name, value)
    config.refresh()
    assert config.current().threads == threads
    with dc.options(threads=6) as now:
        assert now.threads == 6
    run_on(environment, 2)
    assert config.look_again().threads == (2 if threads == 8 else threads)


@pytest.mark.parametrize("limit, threads", [(None, 8), (2.0, 2), (2.5, 3), (0.3, 1), (64.0, 8)])
def test_the_smallest_of_affinity_and_quota(environment, limit, threads):
    environment.setattr(cores, "quota", lambda: limit)
    assert cores.available() == threads


@pytest.mark.parametrize("siblings, threads", [(1, 8), (2, 4), (3, 2), (8, 1), (20, 1)])
def test_workers_share(environment, siblings, threads):
    environment.setattr(cores, "siblings", lambda: siblings)
    assert cores.available() == threads


def test_the_number_follows_the_affinity(environment):
    assert config.current().threads == 8
    run_on(environment, 3)
    assert config.current().threads == 8  # nobody has looked
    assert config.look_again().threads == config.current().threads == 3
    with dc.options(jit="off") as now:
        assert now.threads == 3
        run_on(environment, 1)
        assert config.look_again().threads == 1 and config.current().jit == "off"
    assert config.current().threads == 1
    with dc.options(threads=5):
        run_on(environment, 4)
        assert config.look_again().threads == 5
    assert config.current().threads == 4


def test_looks_become_rare(environment):
    environment.setattr(config, "_pause", 0.0)
    config.current()
    config.look_again()
    assert config._pause >= config._FIRST
    run_on(environment, 2)
    environment.setattr(config, "_pause", 1e9)
    assert config.look_again().threads == 8


# ---- control groups -----------------------------------------------------------------------------------
def tree(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(folder)


V2 = "0::/a/b\n"
V1 = "9:memory:/x\n4:cpu,cpuacct:/a/b\n"


@pytest.mark.parametrize("groups, files, limit", [
    (V2, {}, None),
    (V2, {"a/b/cpu.max": "max 100000\n"}, None),
    (V2, {"a/b/cpu.max": "150000 100000\n"}, 1.5),
    (V2, {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "200000 100000", "cpu.max": "max 100000"}, 2.0),
    (V2, {"a/b/cpu.max": "max 100000\n", "cpu.max": "50000 100000"}, 0.5),
    (V2, {"unified/a/cpu.max": "70000 10000"}, 7.0),
    ("0::/\n", {"cpu.max": "400000 100000"}, 4.0),
    ("0::/../outside\n", {"cpu.max": "400000 100000", "outside/cpu.max": "1 1"}, 4.0),
    ("0::/host/path\n", {"cpu.max": "400000 100000"}, 4.0),  # in a container
    (V2, {"a/b/cpu.max": "much of it\n", "a/cpu.max": ""}, None),
    (V1, {"cpu/a/b/cpu.cfs_quota_us": "-1", "cpu/a/b/cpu.cfs_period_us": "100000"}, None),
    (V1, {"cpu/a/b/cpu.cfs_quota_us": "250000", "cpu/a/b/cpu.cfs_period_us": "100000"}, 2.5),
    (V1, {"cpu,cpuacct/a/cpu.cfs_quota_us": "50000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, 0.5),
    (V1, {"cpu/a/b/cpu.cfs_quota_us": "250000"}, None),
    (V2 + V1, {
        "cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000",
        "a/b/cpu.max": "600000 100000",
    }, 2.5),
    ("5:cpuset:/\n0:\nnonsense\n", {"cpu.cfs_quota_us": "1", "cpu.cfs_period_us": "1"}, None),
])  # fmt: skip
def test_the_quota_of_a_control_group(tmp_path, groups, files, limit):
    (tmp_path / "groups").write_text(groups)
    assert cores.quota(str(tmp_path / "groups"), tree(tmp_path / "root", files)) == limit


def test_no_control_groups(tmp_path):
    assert cores.quota(str(tmp_path / "none"), str(tmp_path)) is None


# ---- workers ------------------------------------------------------------------------------------------
needs_lists = pytest.mark.skipif(
    not os.path.exists("/proc/thread-self/children"), reason="the system does not tell who has which children"
)
PROGRAM = """
import multiprocessing, sys
from dcarray.core import config, cores

def look(_):
    import time
    time.sleep(0.05)
    return cores.siblings(), config.look_again().threads, cores.affinity()

if __name__ == "__main__":
    count = int(sys.argv[2])
    with multiprocessing.get_context(sys.argv[1]).Pool(count) as pool:
        found = pool.map(look, range(3 * count), 1)
    assert all(siblings == count for siblings, _, _ in found), found
    assert all(threads == max(1, cores // count) for _, threads, cores in found), found
    assert cores.siblings() == 1
    print("fine")
"""


@needs_lists
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_pool_of_processes(tmp_path, method, count):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    rest = {k: v for k, v in os.environ.items() if k not in ("DCARRAY_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), method, str(count)],
        capture_output=True, text=True, timeout=120, env=rest,
    )  # fmt: skip
    assert done.stdout == "fine\n", done.stderr


FORKS = """
import os, sys, time
from dcarray.core import config, cores

def status(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

end, go = os.pipe()
children = []
for _ in range(2):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(end, 1)  # until all are there
        found = cores.siblings()
        if os.fork() == 0:  # a service: its parent ends
            time.sleep(0.5)
            os._exit(0 if cores.siblings() == 1 else print("of a service", cores.siblings(), flush=True) or 1)
        time.sleep(0.2)  # siblings are still counting
        os._exit(0 if found == 2 else 1)
    children.append(child)
os.close(go)
assert [status(child) for child in children] == [0, 0]
assert cores.siblings() == 1
time.sleep(0.6)
print("fine")
"""


@needs_lists
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_workers_and_services() -> None:
    done = python("-W", "ignore", "-c", FORKS)
    assert done.stdout == "fine\n", done.stderr


def test_where_nothing_tells_who_the_siblings_are(monkeypatch):
    def nothing(process: int) -> list[int]:
        raise FileNotFoundError

    monkeypatch.setattr(cores, "_forked", True)
    monkeypatch.setattr(cores, "_parent", os.getppid())
    monkeypatch.setattr(cores, "_children", nothing)
    assert cores.siblings() == cores.affinity() and cores.available() == 1
