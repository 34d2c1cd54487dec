"""``DCARRAY_PERF_MAP``: the file from which profilers have the names of compiled code."""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from fresh import python

from dcarray.lowering.runtime import perf_map

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="only its own linker writes the file"
)

LINE = re.compile(r"([0-9a-f]+) ([0-9a-f]+) (.+)\n")
LOADED = """\
import os
import numpy as np
import dcarray as dc
N = dc.symbol("N")
def smooth(u, steps):
    for _ in range(steps):
        u[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]

@dc.program
def scaled(x: dc.types.float64[N]):
    return 3.0 * x + 1.0

def recorded(a):
    b = a * 2.0
    return (b - 1.0).sum()

with dc.options(jit="eager", eager_below=0):
    dc.accelerate(smooth)(np.ones(10_000), 10)
    scaled(np.ones(10_000))
    float(recorded(dc.asarray(np.ones(100_000))))
    if os.fork() == 0:
        print("child", os.getpid(), flush=True)
        os._exit(0)
    os.wait()
print("parent", os.getpid())
print(open("/proc/self/maps").read())
"""


def _entries(pid: int) -> list[tuple[int, int, str]]:
    path = Path(f"/tmp/perf-{pid}.map")
    text = path.read_text()
    path.unlink()
    found = [LINE.fullmatch(row) for row in text.splitlines(keepends=True)]
    assert found and all(found)
    return [(int(one[1], 16), int(one[2], 16), one[3]) for one in found if one]


def test_functions_are_named_by_the_program_and_lie_in_loaded_code(tmp_path: Path) -> None:
    script = tmp_path / "loads.py"
    script.write_text(LOADED)
    environment = {**os.environ, "DCARRAY_PERF_MAP": "1", "DCARRAY_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # compiled, and found in the cache folder
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        pids = dict(row.split() for row in done.stdout.splitlines()[:2])
        entries = _entries(int(pids["parent"]))
        assert entries == _entries(int(pids["child"]))  # which has the same code at the same addresses
        maps = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r-xp", done.stdout, re.M)
        code = [(int(first, 16), int(last, 16)) for first, last in maps]
        for address, size, name in entries:
            assert size and any(first <= address and address + size <= last for first, last in code), name
        spans = sorted((address, address + size) for address, size, _ in entries)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        names = [name for _, _, name in entries]
        for function, lines in (("smooth", "6-7"), ("scaled", "10"), ("recorded", "14-15")):
            wanted = rf"dcarray::{function}\.kernel\d+\.phase0:{re.escape(str(script))}:{lines}"
            assert any(re.fullmatch(wanted, name) for name in names), (wanted, names)


def test_what_others_wrote_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    before = path.read_text() if path.exists() else None
    monkeypatch.setattr(perf_map, "_lines", ["another"])  # so that no forks are watched for this test
    monkeypatch.setenv("DCARRAY_PERF_MAP", "1")
    try:
        path.write_text("10 8 py::theirs:x.py\n")
        with perf_map.named(lambda: ("f", "a\nb.py:1")):
            perf_map.note([perf_map.Function("phase0", 0x1000, 0x20)])
        perf_map.note([perf_map.Function("phase0", 0x2000, 0x20)])  # of nobody: it does not run here
        assert path.read_text() == "10 8 py::theirs:x.py\n1000 20 dcarray::f.kernel1.phase0:a?b.py:1\n"
    finally:
        path.unlink()
        if before is not None:
            path.write_text(before)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 has -X perf")
def test_names_of_python_and_ours_are_in_one_file() -> None:
    code = (
        "import os\nfrom dcarray.lowering.runtime import perf_map\n"
        "def early(): pass\ndef later(): pass\n"
        "early()\n"
        "with perf_map.named(lambda: ('f', 'x.py:1')):\n"
        "    perf_map.note([perf_map.Function('phase0', 0x1000, 0x20)])\n"
        "later()\nprint(os.getpid())\n"
    )
    done = python("-X", "perf", "-c", code, DCARRAY_PERF_MAP="1")
    names = [name for _, _, name in _entries(int(done.stdout))]
    found = [name for name in names if name.startswith(("py::early", "dcarray::", "py::later"))]
    assert found == ["py::early:<string>", "dcarray::f.kernel1.phase0:x.py:1", "py::later:<string>"]


def test_no_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid, victim = 4_194_304, tmp_path / "victim"  # no process has this number
    link = Path(f"/tmp/perf-{pid}.map")
    victim.write_text("theirs")
    link.symlink_to(victim)
    monkeypatch.setattr(os, "getpid", lambda: pid)
    try:
        with pytest.warns(RuntimeWarning, match="no names for profilers"):
            perf_map._write(["1 1 x\n"])
    finally:
        link.unlink()
    assert victim.read_text() == "theirs"


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_perf_reads_it(tmp_path: Path) -> None:
    script, data = tmp_path / "hot.py", tmp_path / "perf.data"
    source = LOADED[: LOADED.index("with dc")] + (
        "with dc.options(jit='eager', threads=1):\n"
        "    dc.accelerate(smooth)(np.ones(100_000), 20_000)\n"
        "os.write(1, str(os.getpid()).encode())\n"
    )
    script.write_text(source)
    record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-o", str(data)]
    able = subprocess.run([*record, "true"], capture_output=True, text=True)
    if able.returncode:
        pytest.skip(f"perf may not record here: {able.stderr.strip()[:200]}")
    command = [*record, sys.executable, str(script)]
    environment = {**os.environ, "DCARRAY_PERF_MAP": "1", "DCARRAY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    try:
        told = subprocess.run(
            ["perf", "report", "-i", str(data), "--stdio", "--sort", "symbol"],
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
    finally:
        Path(f"/tmp/perf-{done.stdout}.map").unlink()
    assert re.search(r"\d\d\.\d\d%.* dcarray::smooth\.kernel\d\.\w+:", told.stdout), told.stdout[:3000]
