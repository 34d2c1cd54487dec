"""Programs traced once with symbolic sizes give NumPy's results at all sizes, or guards refuse these."""

from pathlib import Path
from typing import Any

import pytest
from program_runs import module, served_sizes
from symbolic_sources import FAMOUS, random_program

from dcarray.core.errors import ProgramError
from dcarray.jit.program.region import region_of

SIZES: list[Any] = [
    {"N": n, "M": m, "T": t}
    for n, m, t in ((0, 0, 0), (1, 1, 1), (2, 2, 3), (0, 4, 2), (5, 1, 2), (2, 3, -1),
                    (7, 9, 2), (9, 7, 1), (33, 40, 2))
]  # fmt: skip
LARGE = [s for s in SIZES if min(s["N"], s["M"]) >= 7]


@pytest.mark.parametrize(
    "name", ["jacobi", "lu", "covariance", "durbin", "two_products", "strided", "accumulated", "whole"]
)
def test_known_programs(name: str, tmp_path: Path) -> None:
    function = getattr(module(tmp_path, FAMOUS, f"famous_{name}"), name)
    served = served_sizes(function, SIZES)
    assert all(sizes in served for sizes in LARGE)


@pytest.mark.parametrize("seed", range(14))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    text = random_program(seed)
    served = served_sizes(module(tmp_path, text, f"random_{seed}").f, SIZES, seed)
    assert all(sizes in served for sizes in LARGE), text


def test_guards_are_relations_of_sizes(tmp_path: Path) -> None:
    made = module(tmp_path, """
def fits(A: np.float64[N], B: np.float64[M]):
    A += B

def first(A: np.float64[N]):
    return A[0] + A[-2]

def inside(A: np.float64[N], T: int):
    if T >= 0 and T < len(A):
        A[T] = 1.0
""")  # fmt: skip

    def guards(function: Any) -> list[str]:
        return [str(g) for g in region_of(function).region.guards]

    assert guards(made.fits) in (["M-N == 0"], ["-M+N == 0"])
    assert guards(made.first) == ["N-1 >= 0", "N-2 >= 0"]
    assert guards(made.inside) == []


WRONG = """
def reaches_out(A: np.float64[N]):
    for i in range(len(A)):
        A[i + 1] = 0.0

def calls_itself(A: np.float64[N]):
    return calls_itself(A)

def untyped(A):
    return A

def odd(A: np.ndarray):
    return A

def dynamic(A: np.float64[N]):
    return A if A[0] > 0 else None

def no_axis(A: np.float64[2 * N]):
    return A

def unbound(A: np.float64[N]):
    return np.zeros(M)

def mixed(A: np.float64[3], B: np.float64[4]):
    return A + B

def both(N: int, A: np.float64[N]):
    return A
"""


@pytest.mark.parametrize(("name", "offset", "reason"), [
    ("reaches_out", 2, "bounds"), ("calls_itself", 0, "calls itself"), ("untyped", 0, "no type"),
    ("odd", 0, "not a program's type"),
    ("dynamic", 1, "depends on a condition"), ("no_axis", 0, "does not follow"),
    ("unbound", 1, "no argument has the size M"), ("mixed", 1, "not known to fit"), ("both", 0, "size of A"),
])  # fmt: skip
def test_errors_name_file_and_line(name: str, offset: int, reason: str, tmp_path: Path) -> None:
    made = module(tmp_path, WRONG)
    with pytest.raises(ProgramError, match=reason) as caught:
        region_of(getattr(made, name))
    lines = (tmp_path / "programs.py").read_text().splitlines()
    start = next(k for k, line in enumerate(lines, 1) if line.startswith(f"def {name}("))
    assert caught.value.line == start + offset and str(caught.value).startswith(str(tmp_path / "programs.py"))
