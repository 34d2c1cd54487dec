"""Others than the running statements, such as tools, in programs that print what they do without compiled
code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = {
    "lines and calls": """
        import sys
        def helper(v):
            return v * 0.5 + 1
        def work(x, n):
            s, k = 0.0, 0
            while k < n:
                k += 1
                if x[k % 8] > 6:
                    s -= 1
                    continue
                if k > 90:
                    break
                s += helper(x[k % 8])
            for v in x:
                if v > 1e9:
                    return 3
                s += v
            t = s * 2
            u = t + 1
            if u > 3:
                u = u * 2
                s = u + t
            elif u < 0:
                s = u - 1
            y = x * s
            return y.sum() + u
        x = np.arange(8.0)
        print([work(x, 100 + k) for k in range(5)])
        seen = []
        def tracer(frame, event, argument):
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return tracer
        sys.settrace(tracer)
        work(x, 100)
        sys.settrace(None)
        print(len(seen), seen)
        seen.clear()
        sys.setprofile(tracer)
        work(x, 90)
        sys.setprofile(None)
        print(seen)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_the_same(name: str, tmp_path: Path) -> None:
    text = "import faulthandler\nimport numpy as np\nfaulthandler.dump_traceback_later(100, exit=True)\n"
    lines = PROGRAMS[name].splitlines()
    (tmp_path / "program.py").write_text(text + "\n".join(line[8:] for line in lines) + "\n")
    environment = {**os.environ, "DCARRAY_CACHE_DIR": str(tmp_path / "cache"), "DCARRAY_JIT": "eager"}
    found = [
        subprocess.run(
            [sys.executable, *way, "program.py"],
            env=environment, cwd=tmp_path, capture_output=True, text=True,
        )
        for way in ((), ("-m", "dcarray", "run"))
    ]  # fmt: skip
    assert found[1].stdout == found[0].stdout, found[1].stderr
    assert found[1].returncode == found[0].returncode == 0, found[1].stderr
