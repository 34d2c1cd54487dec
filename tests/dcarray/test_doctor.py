"""``python -m dcarray doctor``: where the time of programs goes whose times are known."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dcarray.inspect.doctor.traffic import traffic

KNOWN = """\
import sys, time
import numpy as np
def timed(name, function, *arguments):
    begun = time.perf_counter()
    function(*arguments)
    print(name, time.perf_counter() - begun)
def sleeps():
    time.sleep(0.4)
def loops(s=0):
    for i in range(600_000):
        s += i * i
        s ^= (i * i) % 7 + (i * i * i) % 11 + (i * 3) % 13 + (i * i) % 17 + (i * 5) % 19
def arrays(n=1_000_000):
    a = np.ones(n)
    for _ in range(150):
        np.sin(a, out=a)
        a += 1.0
timed("sleeps", sleeps)
timed("loops", loops)
timed("arrays", arrays)
"""
SPANS = {"sleeps": (7, 8), "loops": (9, 12), "arrays": (13, 17)}


def _doctor(script: Path, *options: str, arguments: tuple[str, ...] = (), given: str | None = None) -> Any:
    command = [sys.executable, "-m", "dcarray", "doctor", *options, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=given, timeout=300)


def test_lines_have_the_time_that_the_program_itself_measures(tmp_path: Path) -> None:
    script, out = tmp_path / "known.py", tmp_path / "known.json"
    script.write_text(KNOWN)
    done = _doctor(script, "--compare", "none", "--json", str(out))
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())
    lines = {line: seconds for file, line, seconds in told["all"] if file == str(script)}
    known = {name: float(text) for name, text in map(str.split, done.stdout.splitlines())}
    assert sum(lines.values()) + told["outside"] == pytest.approx(told["seconds"], rel=0.05)
    for name, (first, last) in SPANS.items():
        spent = sum(seconds for line, seconds in lines.items() if first <= line <= last)
        assert spent == pytest.approx(known[name], rel=0.05, abs=0.02), name
    assert lines[8] > 0.95 * known["sleeps"]
    assert lines[12] > lines.get(11, 0.0)  # a long line of Python beside a short one
    assert lines[16] > lines.get(17, 0.0)  # sines beside a sum
    assert min(lines.values()) >= 0


@pytest.mark.parametrize(
    ("text", "status"),
    [("import sys; sys.exit(3)", 3), ("raise KeyError('here')", 1), ("import os; os._exit(4)", 4)],
)
def test_a_program_ends_as_it_does_by_itself(tmp_path: Path, text: str, status: int) -> None:
    script = tmp_path / "ends.py"
    script.write_text(text + "\n")
    done = _doctor(script, "--compare", "none")
    assert done.returncode == status
    assert ("KeyError: 'here'" in done.stderr) == (status == 1)
    assert "doctor/child.py" not in done.stderr


def test_input_and_arguments_are_the_programs(tmp_path: Path) -> None:
    script = tmp_path / "asks.py"
    script.write_text("import sys\nif __name__ == '__main__':\n    print(input(), sys.argv[1:])\n")
    done = _doctor(script, arguments=("--html", "x"), given="given\n")
    assert done.stdout == "given ['--html', 'x']\n"
    assert "the input cannot be read twice" in done.stderr


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_a_second_run_is_measured(tmp_path: Path) -> None:
    script, out, figures = tmp_path / "page.py", tmp_path / "page.html", tmp_path / "page.json"
    script.write_text("import time\nfor i in range(3):\n    time.sleep(0.05)  # <b>&\n")
    done = _doctor(script, "--html", str(out), "--json", str(figures), given=None)
    assert done.returncode == 0, done.stderr
    page = _Page()
    page.feed(out.read_text())
    assert not page.open and not page.links
    assert "# &lt;b&gt;&amp;" in out.read_text()
    told = json.loads(figures.read_text())
    assert told["lines"][0]["line"] == 3
    (way,) = told["ways"]
    assert way["way"] == "run" and way["seconds"] > 0.15


def test_bytes_of_lines() -> None:
    values: dict[str, Any] = {"a": [[1000], 8, "f"], "b": [[1000], 8, "f"], "i": [[1000], 8, "i"], "n": 2}
    text = "c = 2.0 * a + b\na[1:-1] = a[:-2] + a[2:]\nc = a @ b\nc = i + a\na += b\nc = unknown(a)\nd = a\n"
    found = [traffic(text, line, values) for line in range(1, 8)]
    assert found[0] == (40_000, 24_000, 1, 8000)  # a, t; t, b, c: and a, b, c
    assert found[1] == (5 * 7984, 8000 + 7984, 1, 7984)
    assert found[4] == (24_000, 24_000, 0, 0)
    assert [found[k] for k in (2, 3, 5, 6)] == [None] * 4
