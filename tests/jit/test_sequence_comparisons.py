"""Comparisons of tuples of numbers that a plan does not know."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
def equal(v, w): return v == w
def other(v, w): return v != w
def less(v, w): return v < w
def shapes(x, y): return x.shape == y.shape, (len(x), 3) != (len(y), 3)
tuples = [(0, 0), (1, 2), (1, 3), (1, 2), (1,), (), (float("nan"), 1)]
for v in tuples:
    for w in tuples:
        print(equal(v, w), other(v, w), less(v, w))
for n in range(2, 5):
    for m in range(2, 5):
        print(shapes(np.ones(n), np.ones(m)))
"""


def test_tuples_of_a_plan_compare_as_the_run_has_them(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    environment = {**os.environ, "DCARRAY_JIT": "eager", "DCARRAY_CACHE_DIR": str(tmp_path / "cache")}
    plain, accelerated = (
        subprocess.run([sys.executable, *way, file], env=environment, capture_output=True, text=True)
        for way in ([], ["-m", "dcarray", "run"])
    )
    assert accelerated.stdout == plain.stdout and plain.stdout.count("\n") == 58
