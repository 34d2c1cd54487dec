"""A suite of two tiny benchmarks in NPBench's layout."""

import json
from pathlib import Path

FILES = {
    "npbench/benchmarks/tiny/halve/halve.py": """
import numpy as np
def initialize(N):
    return np.arange(N, dtype=np.float64), np.zeros(N)
""",
    "npbench/benchmarks/tiny/halve/halve_numpy.py": """
import numpy as np
def halve(N, a, b):
    t = np.empty(N)
    t[:] = a * 0.5
    b[1:] = t[:-1]
    return np.sum(t)
""",
    "npbench/benchmarks/tiny/broken/broken_numpy.py": """
def broken(N):
    raise ValueError("not today")
""",
    "bench_info/halve.json": json.dumps(
        {
            "benchmark": {
                "relative_path": "tiny/halve", "module_name": "halve", "func_name": "halve",
                "parameters": {"S": {"N": 20}},
                "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["a", "b"]},
                "input_args": ["N", "a", "b"], "array_args": ["a", "b"], "output_args": ["b"],
            }
        }
    ),
    "bench_info/broken.json": json.dumps(
        {
            "benchmark": {
                "relative_path": "tiny/broken", "module_name": "broken", "func_name": "broken",
                "parameters": {"S": {"N": 20}}, "input_args": ["N"], "array_args": [], "output_args": [],
            }
        }
    ),
}  # fmt: skip


def written(folder: Path) -> Path:
    """Write the suite into a folder, and return that."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder
