"""``%%dcarray``: cells of IPython under the doctor."""

import json
import os
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fresh import python

from dcarray.inspect.doctor.notebook import _Child

SESSION = """\
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell, told = InteractiveShell.instance(), []
shell.run_cell("%load_ext dcarray", store_history=True)
for cell in json.load(open(sys.argv[1])):
    with capture_output() as seen:
        shell.run_cell(cell, store_history=True)
    told.append([seen.stdout + seen.stderr, [one.data for one in seen.outputs]])
json.dump(told, open(sys.argv[2], "w"))
"""


def _session(folder: Path, *cells: str, **environment: str) -> list[tuple[str, list[dict[str, str]]]]:
    """What each cell prints, and what it displays by type."""
    pytest.importorskip("IPython", reason="IPython is not installed")
    script, given, out = folder / "session.py", folder / "cells.json", folder / "told.json"
    script.write_text(SESSION)
    given.write_text(json.dumps(cells))
    more = {"IPYTHONDIR": str(folder), "DCARRAY_CACHE_DIR": str(folder / "cache"), **environment}
    python(script, given, out, **more)
    return [(printed, shown) for printed, shown in json.loads(out.read_text())]


class _Cells(HTMLParser):
    """The texts of a table's cells, by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def _rows(html: str) -> list[dict[str, str]]:
    page = _Cells()
    page.feed(html)
    return [dict(zip(page.rows[0], row, strict=True)) for row in page.rows[1:]]


def test_a_cell_has_the_times_of_its_lines_and_is_compared_with_compiled_code(tmp_path: Path) -> None:
    before = (
        "import time, numpy as np\nu, runs = np.ones(200_000), 0\n"
        "def smooth(steps):\n    for _ in range(steps):\n"
        "        u[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]\n"
    )
    cell = "%%dcarray\nruns += 1\ntime.sleep(0.5)\nsmooth(300)\nprint('once')\nruns\n"
    # without a wait for plans
    _, (printed, (report,)), after = _session(tmp_path, before, cell, "runs, u[0]", DCARRAY_JIT="eager")
    assert printed.startswith("once\nOut") and printed.count("once") == 1  # not by the second run, too
    assert printed.endswith(": 1\n") and after[0].endswith(": (1, np.float64(1.0))\n")
    rows = {row["line"]: row for row in _rows(report["text/html"])}
    assert rows["cell:2"]["source"] == "time.sleep(0.5)"
    assert 0.49 < float(rows["cell:2"]["seconds"]) < 1.0
    inner = rows["In[2]:5"]
    assert inner["source"].startswith("u[1:-1] = 0.25")
    text = report["text/plain"]
    assert text.startswith("dcarray doctor: ")
    assert "%%dcarray run: " in text and " times as fast; " in text
    assert "compiled, 1 runs" in text  # the loop, or the call of it
    assert "not measured" not in text and "run_cell_magic" not in text


def test_a_cell_runs_as_compiled_code(tmp_path: Path) -> None:
    cells = (
        "import numpy as np\nimport dcarray as dc\na = np.zeros(1000)",
        "%%dcarray run\nfor i in range(1000):\n    a[i] = i * 2.0\na.sum()\n",
        "%%dcarray run\nb = a[3];",
        "print(b, dc.report())",
        "%%dcarray runs\n1",
    )
    told = _session(tmp_path, *cells, DCARRAY_JIT="eager")
    assert told[1][0].endswith(": np.float64(999000.0)\n")
    assert not told[2][0] and not told[2][1]
    assert told[3][0].startswith("6.0 ")
    report = next(row for row in told[3][0].splitlines() if "loops run as compiled code" in row)
    assert int(report.split()[-1]) == 1
    assert "usage: %%dcarray" in told[4][0]


def test_errors_are_the_cells_own(tmp_path: Path) -> None:
    cells = "x = 3", "%%dcarray\nx = 4\n{}['missing']\n", "%%dcarray --compare none\nx"
    _, (printed, (failed,)), (value, (alone,)) = _session(tmp_path, *cells)
    assert "KeyError" in printed and printed.endswith(": 'missing'\n")
    assert "%%dcarray run: not measured, the cell raised an error" in failed["text/plain"]
    assert value.endswith(": 4\n")
    assert "%%dcarray run" not in alone["text/plain"]


def test_without_ipython_there_is_a_clear_error() -> None:
    code = (
        "import sys, dcarray\nsys.modules['IPython.core.error'] = None\ndcarray.load_ipython_extension(None)"
    )
    done = python("-c", code, status=None)
    assert done.returncode == 1
    assert "ImportError: %%dcarray needs IPython: pip install 'dcarray[notebook]'" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_second_run_that_does_not_end_is_given_up() -> None:
    def told(does: Any, patience: float = 60.0) -> Any:
        child = _Child(does)
        try:
            return child.told(patience)
        finally:
            child.end()
            with pytest.raises(ChildProcessError):
                os.waitpid(child._pid, os.WNOHANG)

    assert told(lambda: {"a": 1}) == {"a": 1}
    begun = time.monotonic()
    assert told(lambda: time.sleep(60), 0.2) == "the second run took more than 0 s"
    assert time.monotonic() - begun < 30
    assert told(lambda: os._exit(3)) == "the second run has crashed"
    assert told(lambda: 1 // 0) == "the second run raised ZeroDivisionError"
