"""Programs compiled ahead of time by ``python -m dcarray compile``: libraries, headers, loaders, errors."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fresh import python
from library_runs import SANITIZERS, under_sanitizers
from program_runs import HEAD, loaded, module
from symbolic_sources import FAMOUS, random_program

from dcarray.core.errors import ProgramError
from dcarray.jit.program.compile_command import compile_library, main
from dcarray.lowering.aot import build
from dcarray.lowering.aot.interface import STATUSES
from dcarray.lowering.aot.objects import machine
from dcarray.lowering.errors import Unsupported

STATUS = {name: k for k, (name, _) in enumerate(STATUSES)}
EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = [(1, 1, 1), (2, 2, 3), (0, 4, 2), (5, 1, 2), (7, 9, 2), (9, 7, 1), (33, 40, 2), (130, 67, 3)]
PROGRAMS = [f"random{seed}" for seed in range(14)]


def written(tmp_path: Path, text: str) -> ModuleType:
    return module(tmp_path, text, "written")


def compiled(tmp_path: Path, text: str, *names: str, **how: Any) -> ModuleType:
    """The loader of functions in source text."""
    source = written(tmp_path, text)
    made = compile_library([getattr(source, name) for name in names], tmp_path / "out", "made", **how)
    return loaded(made[2])


def arguments(n: int, m: int, t: int) -> tuple[Any, ...]:
    r = np.random.default_rng(n + m)
    return r.random((n, m)), r.random((n, m)), r.random(m), r.random(n), 0.75, t


def check_random_programs(library: Path, source: ModuleType, names: list[str] = PROGRAMS) -> int:
    """Compare the functions of a library with NumPy; returns how many calls no guard refuses."""
    served = 0
    made = loaded(library)
    for name in names:
        for n, m, t in SIZES:
            given, expected = arguments(n, m, t), arguments(n, m, t)
            try:
                found = getattr(made, name)(*given)
            except ValueError as error:
                assert "GUARD" in str(error)
                continue
            served += 1
            with np.errstate(all="ignore"):
                wanted = getattr(source, name)(*expected)
            for x, y in zip((*found, *given[:4]), (*wanted, *expected[:4]), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9, err_msg=f"{name} {n, m, t}")
    return served


RANDOM = "\n".join(random_program(100 + seed, name) for seed, name in enumerate(PROGRAMS))


@pytest.mark.parametrize(
    ("names", "how"),
    [(PROGRAMS, {}), (PROGRAMS[:5], {"extra": ("-g0",)}), (PROGRAMS[5:9], {"cpu": "x86-64"})],
    ids=["objects", "c", "level"],
)
def test_random_programs_at_unseen_sizes(names: list[str], how: dict[str, Any], tmp_path: Path) -> None:
    """Kernels are objects by LLVM, of this processor or a level; with options for the compiler they are C."""
    if "cpu" in how and platform.machine() != "x86_64":
        pytest.skip("the levels are those of x86-64")
    source = written(tmp_path, RANDOM)
    made = compile_library([getattr(source, name) for name in names], tmp_path, "made", **how)
    assert check_random_programs(made[2], source, names) >= 4 * len(names)


def test_functions_of_vectors_come_from_the_c_library(tmp_path: Path) -> None:
    """Where it has them and the processor can; a level without them calls functions of numbers."""
    if machine("native").vector_math is None or not build.has_library("mvec"):
        pytest.skip("there is no libmvec, or the processor has no AVX2")
    text = "def f(x: np.float64[N]):\n    return np.exp(x) + np.arctan(x)\n"
    for cpu, there in (("native", True), ("x86-64", False)):
        folder = tmp_path / cpu
        folder.mkdir()
        made = compiled(folder, text, "f", cpu=cpu)
        code = (folder / "out" / "libmade.so").read_bytes()
        assert (b"_ZGV" in code) == there == (b"libmvec" in code)
        assert not build.has_library("dcarray_has_no_such_library")
        x = np.linspace(-3, 3, 1003)
        np.testing.assert_allclose(made.f(x), np.exp(x) + np.arctan(x), rtol=1e-12, atol=1e-14)


def test_random_programs_under_sanitizers(tmp_path: Path) -> None:
    source = written(tmp_path, RANDOM)
    names = PROGRAMS[:5]
    try:
        compile_library([getattr(source, name) for name in names], tmp_path, "made", extra=SANITIZERS)
    except ProgramError as error:
        pytest.skip(f"there are no sanitizers: {error}")
    run = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); from pathlib import Path\n"
        "import test_ahead_of_time as t\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"t.check_random_programs(folder / 'made.py', t.written(folder, t.RANDOM), {names})"
    )
    done = under_sanitizers([sys.executable, "-c", run])
    assert done.returncode == 0, done.stderr[-3000:]


def test_known_programs(tmp_path: Path) -> None:
    names = ["jacobi", "lu", "covariance", "durbin", "two_products", "strided", "accumulated", "whole"]
    made = compiled(tmp_path, FAMOUS, *names)
    source = written(tmp_path, FAMOUS)
    for n in (9, 40):
        a, m = np.random.default_rng(n).random((n, n)) + n * np.eye(n), n + 3
        cases: dict[str, Any] = {
            "jacobi": (a, a * 2, 5),
            "lu": (a,),
            "covariance": (float(n), a[:, :-2].copy()),
            "durbin": (a[0],),
            "two_products": (np.float64(0.5), a[:, 1:].copy(), a[0, 1:].copy(), a[1].copy()),
            "strided": (np.ones((n, m)), np.ones(2 * m + 1, np.float32)),
            "accumulated": (a,),
            "whole": (np.arange(n * m).reshape(n, m), 2),
        }
        for name, given in cases.items():
            mine = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
            found, wanted = getattr(made, name)(*mine), getattr(source, name)(*given)
            pairs = [*zip(mine, given, strict=True)]
            pairs += zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
            for x, y in pairs:
                assert type(x) is type(y), name
                if y is not None:
                    np.testing.assert_allclose(x, y, rtol=1e-9, err_msg=name)


KINDS = """
def kinds(
    a: bool, b: np.float32, c: complex, d: np.complex64, e: np.uint8, f: np.float16, n: int, A: np.bool_[N]
):
    B = np.zeros(len(A), dtype=np.complex128)
    B[:] = c + d * b + e + f + n
    A[:] = A ^ a
    return B, B[0], n + 1, 7

def functions(A: np.float64[N]):
    return np.exp(A) + np.sin(A) * np.log(A + 1.0) ** 2.5 + np.arctan2(A, 2.0) + np.hypot(A, 3.0)

def defaults(A: np.float64[N], scale: float = 2.0, *, shift: float = 1.0):
    A *= scale
    A += shift
    return A

def gathered(A: np.float64[N], at: np.int64[M]):
    s = 0.0
    for k in range(at.shape[0]):
        s += A[at[k]]
    return s

def between(A: np.float64[N], B: np.float64[N], n: int):
    B[n:] = A[n:]

def stacked(A: np.float64[K, N, M], B: np.float64[K, M, 3], C: np.float64[M, 4], v: np.float64[M]):
    return A @ B, A @ C, A @ v, A[0].T @ A[0]

def nothing():
    return np.full(3, np.inf), 2.5
"""


def test_kinds_of_arguments_and_results(tmp_path: Path) -> None:
    source = written(tmp_path, KINDS)
    names = ["kinds", "functions", "defaults", "gathered", "between", "stacked", "nothing"]
    made = compiled(tmp_path, KINDS, *names)
    flags = [np.array([True, False, True]) for _ in range(2)]
    given = True, np.float32(1.5), 1 + 2j, np.complex64(3 - 1j), np.uint8(200), np.float16(0.5), -3
    found, wanted = made.kinds(*given, flags[0]), source.kinds(*given, flags[1])
    for x, y in zip(found, wanted, strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(*flags)
    a = np.random.default_rng(0).random(1000) + 0.5
    np.testing.assert_allclose(made.functions(a), source.functions(a), rtol=1e-13)
    same = np.ones(4)
    assert made.defaults(same, shift=0.5) is same and same.tolist() == [2.5] * 4
    assert made.gathered(a, np.array([3, 999, 0])) == pytest.approx(a[3] + a[999] + a[0])
    with pytest.raises(ValueError, match="FAILED_CHECK"):
        made.gathered(a, np.array([3, 1000]))
    r = np.random.default_rng(1)
    stack = r.random((5, 7, 6)), r.random((5, 6, 3)), r.random((6, 4)), r.random(6)
    for x, y in zip(made.stacked(*stack), source.stacked(*stack), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
    full, number = made.nothing()
    assert np.isposinf(full).all() and number == 2.5


def test_loaders_refuse_what_the_library_cannot_take(tmp_path: Path) -> None:
    made = compiled(tmp_path, KINDS + FAMOUS, "functions", "two_products", "between", "jacobi")
    a = np.ones((4, 5))
    for error, text, call in (
        (
            TypeError,
            "A is expected to be float64 with 1 axes",
            lambda: made.functions(np.ones(3, np.float32)),
        ),
        (ValueError, "not aligned, or not in C order", lambda: made.functions(np.ones(8)[::2])),
        (
            ValueError,
            r"x is expected to have the shape \(5,\) with N = 4, M = 5, not \(4,\)",
            lambda: made.two_products(1.0, a, np.ones(4), np.ones(4)),
        ),
        (
            TypeError,
            "alpha is expected to be float64",
            lambda: made.two_products("1", a, np.ones(5), np.ones(4)),
        ),
        (ValueError, "OVERLAP", lambda: made.jacobi(*[np.ones((4, 4))] * 2, 3)),
        (ValueError, "BAD_SIZE", lambda: made.jacobi(np.ones((4, 4)), np.ones((4, 4)), 1 << 50)),
        (TypeError, "n is expected to be int64", lambda: made.between(np.ones(3), np.ones(3), 1.5)),
    ):
        with pytest.raises(error, match=text):
            call()


def test_statuses_of_c(tmp_path: Path) -> None:
    """What is wrong with arguments is a status, and nothing is written."""
    compiled(tmp_path, FAMOUS, "strided", "two_products", "jacobi")
    library = ctypes.CDLL(str(tmp_path / "out" / "libmade.so"))

    def status(name: str, *given: Any) -> int:
        return int(
            library[name](
                *[
                    ctypes.c_void_p(x.ctypes.data)
                    if isinstance(x, np.ndarray)
                    else ctypes.c_double(x)
                    if isinstance(x, float)
                    else ctypes.c_int64(x)
                    for x in given
                ]
            )
        )

    a, b = np.ones((4, 4)), np.full((4, 4), 2.0)
    assert status("jacobi", 4, a, b, 3) == STATUS["OK"]
    a[:], b[:] = 1.0, 2.0
    for given, name in (
        ((-1, a, b, 3), "BAD_SIZE"), ((1 << 41, a, b, 3), "BAD_SIZE"),
        ((4, a, b, -(1 << 41)), "BAD_SIZE"), ((4, 0, b, 3), "NULL_POINTER"),
        ((4, a, b.ctypes.data + 4, 3), "MISALIGNED"), ((4, a, a, 3), "OVERLAP"),
        ((4, a, a.ctypes.data + 120, 3), "OVERLAP"), (((1 << 40) - 1, a, b, 3), "TOO_LARGE"),
        ((1, a, b, 3), "GUARD"),
    ):  # fmt: skip
        assert status("jacobi", *given) == STATUS[name], given
    assert (a == 1.0).all() and (b == 2.0).all()
    assert status("jacobi", 0, 0, 0, 1) in (STATUS["OK"], STATUS["GUARD"])


def test_the_example_from_c(tmp_path: Path) -> None:
    """The example of the documents: the command, the C compiler, the program; with all warnings."""
    done = python(
        "-m", "dcarray", "compile", f"{EXAMPLES}/gemm.py:gemm", "-o", "out", "--stem", "gemm", cwd=tmp_path
    )
    assert [Path(line).name for line in done.stdout.splitlines()] == ["libgemm.so", "gemm.h", "gemm.py"]
    program = [
        "cc", "-Wall", "-Wextra", "-pedantic", "-Werror", str(EXAMPLES / "call_gemm.c"), "-Iout",
        "-Lout", "-lgemm", f"-Wl,-rpath,{tmp_path}/out", "-lm", "-o", "call",
    ]  # fmt: skip
    subprocess.run(program, cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "call"], capture_output=True, text=True, check=True).stdout
    assert "largest difference" in printed and "status 4, as GEMM_OVERLAP is 4" in printed
    needed = subprocess.run(
        ["ldd", "out/libgemm.so"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "python" not in needed.stdout
    names = subprocess.run(
        ["nm", "-D", "--defined-only", "out/libgemm.so"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    ).stdout.split()
    assert names[2::3] == ["gemm"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_headers_are_cpp_and_loaders_need_no_dcarray(tmp_path: Path) -> None:
    compiled(tmp_path, KINDS, "kinds", "functions")
    (tmp_path / "use.cpp").write_text(
        '#include "made.h"\nint main() { return functions(1, nullptr, nullptr) != MADE_NULL_POINTER; }\n'
    )
    subprocess.run(["g++", "-Wall", "-Werror", "-fsyntax-only", "-Iout", "use.cpp"], cwd=tmp_path, check=True)
    code = "import sys; sys.modules['dcarray'] = None; import made, numpy as np\n"
    code += "print(made.functions(np.ones(2)).shape)"
    done = python("-c", code, cwd=tmp_path / "out")
    assert done.stdout == "(2,)\n"


def test_c_source_builds_with_the_command_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "programs.py").write_text(HEAD + FAMOUS)
    monkeypatch.chdir(tmp_path)
    given = [
        "compile", "programs.py:durbin", "programs.py:lu", "--stem", "two", "--emit", "c", "--cpu",
        "x86-64",
    ]  # fmt: skip
    assert main(given[1:]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["two.c", "two.h", "two.py"] and not (tmp_path / "libtwo.so").exists()
    subprocess.run(lines[3].partition(": ")[2], shell=True, check=True)
    made, source = loaded(tmp_path / "two.py"), written(tmp_path, FAMOUS)
    r = np.random.default_rng(5).random(17) / 9
    np.testing.assert_allclose(made.durbin(r), source.durbin(r))


# ---- what is refused -----------------------------------------------------------------------------------
WRONG = """
def untyped(A):
    return A

def exp(A: np.float64[N]):
    return A

def half(A: np.float16[N]):
    A[:] = np.spacing(A)

def wide(A: np.float64[N]):
    return "text"

def recursive(A: np.float64[N]):
    return recursive(A)

def näme(A: np.float64[N]):
    return A * 2.0
"""


@pytest.mark.parametrize(("name", "offset", "reason"), [
    ("untyped", 0, "no type"),
    ("exp", 0, "a function of the C library"),
    ("half", 1, "cannot be compiled ahead of time"),
    ("recursive", 0, "calls itself"),
    ("näme", 0, "no name in C"),
    ("wide", 0, "text"),
])  # fmt: skip
def test_errors_name_file_and_line(name: str, offset: int, reason: str, tmp_path: Path) -> None:
    source = written(tmp_path, WRONG)
    with pytest.raises(ProgramError, match=reason) as caught:
        compile_library([getattr(source, name)], tmp_path / "out")
    lines = (tmp_path / "written.py").read_text().splitlines()
    start = next(k for k, line in enumerate(lines, 1) if line.startswith(f"def {name}("))
    assert caught.value.line - start in (offset, offset + 1) and caught.value.file == str(
        tmp_path / "written.py"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("given", "reason"), [
    (["missing.py:f"], "there is no file missing.py"),
    (["programs.py"], "FILE.py:function is expected"),
    (["programs.py:f"], "programs.py has no function f"),
    (["broken.py:f"], "broken.py:2: .*NameError"),
    (["programs.py:lu", "--stem", "a-b"], "not an identifier"),
    (["programs.py:lu", "--cpu", "i386"], "unknown processor"),
    (["programs.py:lu", "programs.py:lu"], "two functions have one name"),
    (
        ["programs.py:two_products", "--blas", "nowhere"],
        "programs.py:[0-9]+: .*BLAS 'nowhere' cannot be linked",
    ),
    (["programs.py:lu", "-o", "programs.py"], "programs.py"),
])  # fmt: skip
def test_commands_that_fail(
    given: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "programs.py").write_text(HEAD + FAMOUS)
    (tmp_path / "broken.py").write_text("import numpy\nundefined\n")
    monkeypatch.chdir(tmp_path)
    assert main(given) == 1
    error = capsys.readouterr().err
    assert re.search(reason, error), error
    assert not list(tmp_path.glob("*.so")) and not list(tmp_path.glob("*.h"))


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> tuple[str, ...]:
        raise Unsupported("there is no C compiler")

    monkeypatch.setattr(build, "compiler", none)
    with pytest.raises(ProgramError, match=r"written.py:\d+: .*there is no C compiler"):
        compiled(tmp_path, FAMOUS, "lu")
