"""Programs that random ones were reduced to: what they print compiled is what Python prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from sited_programs import compare

import dcarray as dc

PROGRAMS = {
    "an operation on bits fails for floats that nothing reads": """
def power(n, d):
    for i in range(n):
        s = d["a"] ^ 1
def shift(n, a):
    for i in range(n):
        s = a << 1
    t = a & 1
def main():
    return told(power, 5, {"a": 0.5}), told(shift, 5, 0.5), told(shift, 5, 1j), told(shift, 5, 2)
""",
}

TOLD = """
def told(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return repr(error)
"""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_do_as_in_python(program: str, tmp_path: Path) -> None:
    with dc.options(jit="eager", cache_dir=None):
        compare(TOLD + program + "\nfor turn in range(3):\n    print(main())\n", tmp_path / "program.py")
