"""``python -m dcarray doctor``: where the time of programs goes whose times are known."""

import json
import os
import shutil
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

KNOWN = """\
import sys, time
import numpy as np
def timed(name, function, *arguments):
    begun = time.perf_counter()
    function(*arguments)
    print(name, time.perf_counter() - begun)
def sleeps():
    time.sleep(1.2)
def loops(s=0):
    for i in range(600_000):
        s += i * i
        s ^= (i * i) % 7 + (i * i * i) % 11 + (i * 3) % 13 + (i * i) % 17 + (i * 5) % 19
def arrays(n=1_000_000):
    a = np.ones(n)
    for _ in range(60):
        np.sin(a, out=a)
        a += 1.0
timed("sleeps", sleeps)
timed("loops", loops)
timed("arrays", arrays)
"""
SPANS = {"sleeps": (7, 8), "loops": (9, 12), "arrays": (13, 17)}


def _doctor(
    script: Path | str, *options: str, arguments: tuple[str, ...] = (), given: str | None = None,
    environment: dict[str, str] | None = None, **others: Any,
) -> Any:  # fmt: skip
    command = [sys.executable, "-m", "dcarray", "doctor", *options, str(script), *arguments]
    if given is not None:
        others["input"] = given
    more = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=more, **others)


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
        assert spent == pytest.approx(known[name], rel=0.05, abs=0.06), name  # looks may be late at its ends
    assert lines[8] > 0.95 * known["sleeps"]
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
    script.write_text("import time\n\x0c\nfor i in range(3):\n    time.sleep(0.05)  # <b>&\n")
    done = _doctor(script, "--html", str(out), "--json", str(figures), given=None)
    assert done.returncode == 0, done.stderr
    page = _Page()
    page.feed(out.read_text())
    assert not page.open and not page.links
    rows = [row for row in out.read_text().split("<tr") if "# &lt;b&gt;&amp;" in row]
    assert ">4<" in rows[-1]
    told = json.loads(figures.read_text())
    assert told["lines"][0]["line"] == 4
    (way,) = told["ways"]
    assert way["way"] == "run" and way["seconds"] > 0.15


WAYS = """\
import sys
import numpy as np
class Grid:
    def smooth(self, u, steps):
        for _ in range(steps):
            u[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
        return u
with open(sys.argv[1], "a") as out:
    u = Grid().smooth(np.ones(200_000), 300)
    print(type(u).__module__, file=out)
"""


def _told(out: Path) -> dict[str, Any]:
    return {one["way"]: one for one in json.loads(out.read_text())["ways"]}


def test_each_way_of_using_dcarray_is_measured_by_a_run(tmp_path: Path) -> None:
    script, out, types = tmp_path / "ways.py", tmp_path / "ways.json", tmp_path / "types.txt"
    script.write_text(WAYS)
    environment = {"DCARRAY_JIT": "eager", "DCARRAY_CACHE_DIR": str(tmp_path / "cache")}
    done = _doctor(
        script, "--compare", "all", "--json", str(out), arguments=(str(types),), environment=environment
    )
    assert done.returncode == 0, done.stderr
    assert [name.split(".")[0] for name in types.read_text().split()] == ["numpy"] * 4 + ["dcarray"]
    told = _told(out)
    assert list(told) == ["floor", "run", "accelerate", "asarray"]
    assert told["accelerate"]["name"] == "@dc.accelerate on smooth"
    for way in ("run", "accelerate"):
        assert any(how.startswith("compiled") for *_, how, _ in told[way]["hot"]), way
    assert all(one["seconds"] > 0 and not one["why"] for one in told.values())
    for one in told.values():
        assert f"  {one['name']}: {one['seconds']:.3f} s, " in done.stderr
    assert (
        told["floor"]["compiled"] == 0 < told["run"]["compiled"] and told["accelerate"]["compiled"] == 0
    )  # the same code is there


def test_what_is_not_measured_has_a_reason(tmp_path: Path) -> None:
    script, out = tmp_path / "ways.py", tmp_path / "ways.json"
    script.write_text(
        "import sys, time\ntime.sleep(0.05)\nsys.exit('dcarray.jit.loops.sites.importer' in sys.modules)\n"
    )
    done = _doctor(script, "--compare", "all", "--json", str(out), given="")
    assert "run: not measured, the input cannot be read twice" in done.stderr
    with (tmp_path / "none").open("w+") as empty:
        done = _doctor(script, "--compare", "all", "--json", str(out), stdin=empty)
    assert "run: not measured, its exit status is 1, not 0" in done.stderr
    assert "@dc.accelerate: not measured, no hot line is in a function" in done.stderr


def test_functions_of_other_modules_are_accelerated_too(tmp_path: Path) -> None:
    package, out = tmp_path / "tool", tmp_path / "tool.json"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys\nfrom .work import work\nprint(sys.argv[1:], work())\n")
    (package / "work.py").write_text(
        "def work(s=0):\n    for i in range(1_000_000):\n        s += i * i % 7\n    return s\n"
    )
    done = _doctor(
        "tool", "--compare", "all", "--json", str(out), "-m", arguments=("-x", "--json"),
        environment={"DCARRAY_JIT": "eager"}, cwd=tmp_path, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stdout == "['-x', '--json'] 1999998\n"
    assert "work.py" in {Path(file).name for file, _, _ in json.loads(out.read_text())["all"]}
    told = _told(out)
    assert told["accelerate"]["name"] == "@dc.accelerate on work"
    (compiled,) = [row for row in told["accelerate"]["hot"] if row[4].startswith("compiled")]
    assert Path(compiled[0]).name == "work.py" and compiled[1] == 2


def test_the_time_of_threads_is_that_of_the_line_that_waits(tmp_path: Path) -> None:
    script, out = tmp_path / "threads.py", tmp_path / "threads.json"
    script.write_text(
        "import threading, time\n"
        "def work():\n"
        "    time.sleep(0.4)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
        "threading.Thread(target=time.sleep, args=(0.2,)).start()\n"
    )
    done = _doctor(script, "--compare", "none", "--json", str(out))
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())
    lines = {line: seconds for file, line, seconds in told["all"] if file == str(script)}
    assert lines[6] == pytest.approx(0.4, abs=0.1)
    assert 3 not in lines
    assert told["seconds"] > 0.55  # it ends when its threads have


def test_a_program_may_come_from_the_standard_input(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    out = tmp_path / "out.json"
    source = (
        "import sys, time, beside\n"
        "time.sleep(0.1)\n"
        "print(sys.argv, repr(sys.path[0]), __file__, beside.VALUE, sys.stdin.read() == '')\n"
    )
    plain = subprocess.run(
        [sys.executable, "-", "a"], input=source, capture_output=True, text=True, cwd=tmp_path
    )
    done = _doctor("-", "--json", str(out), arguments=("a",), given=source, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout == "['-', 'a'] '' <stdin> 5 True\n"
    assert "time.sleep(0.1)" in done.stderr
    assert _told(out)["run"]["seconds"] > 0.1  # the source is there for a second run


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    script, out = tmp_path / "page.py", tmp_path / "page.html"
    text = "import time\ntime.sleep(0.1)  # </td><script>document.title = 'taken'</script>\n"
    script.write_text(text)
    assert _doctor(script, "--compare", "none", "--html", str(out)).returncode == 0
    ask = tmp_path / "asked.html"  # what the browser has made of it, which it says as text
    ask.write_text(
        out.read_text().replace(
            "</body>",
            "<pre id='told'></pre><script>const bar = document.querySelector('.bar').getBoundingClientRect();"
            "document.getElementById('told').textContent = JSON.stringify({title: document.title,"
            "heads: [...document.querySelectorAll('th')].map(th => th.textContent),"
            "cells: [...document.querySelectorAll('td.c')].map(td => td.textContent),"
            "shaded: [...document.querySelectorAll('tr')].filter(tr => tr.style.background).length,"
            "bar: [bar.width, bar.height]})</script></body>",
        )
    )
    browser = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", 
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom", ask.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(browser, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(unescape(done.stdout.split('<pre id="told">')[1].split("</pre>")[0]))
    assert told["title"] == "dcarray doctor"
    first, second = text.splitlines()
    assert told["cells"] == [second, first, second]
    assert told["heads"][:2] == ["seconds", "share"] and told["shaded"] == 1
    assert told["bar"][0] > 90 and told["bar"][1] > 5  # pixels: nearly all of the time is that line's
