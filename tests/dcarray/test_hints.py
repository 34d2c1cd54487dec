"""``python -m dcarray hints``: the types of arguments that a run of a script has seen, as a stub."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.inspect.hint_stubs import stub
from dcarray.inspect.hint_types import Observed
from dcarray.jit.loops.sites.modules import compile_module
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.jit.program.region import region_of

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("DCARRAY_")}
FUNCTIONS = """
import numpy as np
import helper

def gemm(alpha, A, B, C, beta=1.0):
    C *= beta
    C += alpha * (A @ B)

def stencil(u, v, steps):
    for t in range(steps):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])

def scaled(A, x, *, by):
    for i in range(len(A)):
        for j in range(len(x)):
            A[i][j] *= x[j] * by

def shifted(p, w):
    p += w
    return p

def mixed(a, b):
    return a + b

def named(name, A):
    return A

def many(*arrays):
    return arrays

class Solver:
    def step(self, x):
        return x

N = 3
"""
SCRIPT = (
    FUNCTIONS
    + """
import sys
for n, m, k in ((10, 20, 30), (5, 6, 7)):
    gemm(2.5, np.ones((n, k)), np.ones((k, m)), np.ones((n, m)))
    stencil(np.ones(n), np.ones(n), 3)
    scaled([[1.0] * m for _ in range(n)], [0.5] * m, by=2)
    shifted(np.ones((n, 3)), np.float32(1))
    mixed(np.ones(n), np.ones(n, "f4") if n > 5 else 1.0)
    Solver().step(helper.doubled(np.ones(n), np.ones(n + 1)))
named("a", np.ones(3))
many(np.ones(3))
print("arguments:", *sys.argv[1:])
"""
)
HELPER = "def doubled(x, y):\n    y[1:] = 2 * x\n    return y\n"


def timeless(text: str) -> str:
    """A stub without the seconds of what took long, as anything may on a busy machine."""
    return re.sub(r"(# line \d+, \d+ calls?), [\d.e+]+ s", r"\1", text)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dcarray", "hints", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def test_a_script(folder: Path) -> None:
    done = run(folder, "-o", "-", "script.py", "-o", "x")
    assert done.returncode == 0 and not done.stderr
    said, *lines = timeless(done.stdout).splitlines()
    assert said == "arguments: -o x"  # they are the script's
    text = "\n".join(lines)
    for line in (
        "def gemm(alpha: float, A: dc.types.float64[M, K], B: dc.types.float64[K, L], "
        "C: dc.types.float64[M, L], beta: float = ...): ...  # line 5, 2 calls",
        "def stencil(u: dc.types.float64[M], v: dc.types.float64[M], steps: int): ...",
        "def scaled(A: dc.types.float64[M, K], x: dc.types.float64[K], *, by: int): ...",
        "def shifted(p: dc.types.float64[M, 3], w: np.float32): ...",
        "def doubled(x: dc.types.float64[N], y: dc.types.float64[N + 1]): ...",
        "# def mixed(a: dc.types.float64[M], b): ...  # line 22, 2 calls: no program, since b was "
        "1-dimensional float32 and float",
        "# def named(name, A: dc.types.float64[3]): ...  # line 25, 1 call: no program, since name was str",
        'N = dc.symbol("N")',
        "# helper.py",
        "# script.py",
    ):
        assert line in text, text
    assert (
        "class Solver:\n    def step(self, x: dc.types.float64[M]): ...  # line 32, 2 calls; self: Solver"
        in text
    )
    assert "many" not in text and "N[" not in text


def test_what_it_writes_compiles(folder: Path) -> None:
    done = run(folder, "-o", "script.pyi", "script.py")
    assert done.returncode == 0 and done.stdout == "arguments:\n" and "script.pyi" in done.stderr
    text = (folder / "script.pyi").read_text()
    typed: dict[str, Any] = {}
    exec(compile(text, "script.pyi", "exec", dont_inherit=True), typed)
    sys.path.insert(0, str(folder))
    try:
        import script  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(folder))
        for name in ("script", "helper"):
            sys.modules.pop(name, None)
    found = 0
    for name, one in typed.items():
        if isinstance(one, FunctionType):
            function = getattr(script, name, None) or script.helper.doubled
            assert region_of(function, one.__annotations__).region.symbols
            found += 1
    assert found == 5


def test_a_script_that_fails(folder: Path) -> None:
    broken = FUNCTIONS + "stencil(np.ones(5), np.ones(5), 1)\nstencil(np.ones(5), None, 1)\n"
    (folder / "script.py").write_text(broken)
    plain = python("script.py", status=None, cwd=folder)
    done = run(folder, "-o", "-", "script.py")
    assert done.returncode == plain.returncode == 1
    assert "# def stencil(u: dc.types.float64[M], v, steps: int): ..." in done.stdout
    assert "v was 1-dimensional float64 and NoneType" in done.stdout
    last = plain.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1] == last and "hints.py" not in done.stderr and "TypeError" in last
    (folder / "script.py").write_text(FUNCTIONS + "mixed(np.ones(9), np.ones(9))\nraise SystemExit(7)\n")
    done = run(folder, "-o", "-", "script.py")
    assert done.returncode == 7 and "def mixed(a: dc.types.float64[M], b: dc.types.float64[M])" in done.stdout


def test_a_module_and_bad_commands(folder: Path) -> None:
    done = run(folder, "-o", "-", "-m", "script", "1")
    assert done.returncode == 0 and "arguments: 1" in done.stdout and "def gemm(" in done.stdout
    done = run(folder, "nothing.py")
    assert done.returncode == 2 and "nothing.py" in done.stderr and "hints: can't open file" in done.stderr
    done = run(folder, "-o", "no/such.pyi", "script.py")
    assert done.returncode == 2 and "no folder" in done.stderr and not done.stdout
    assert run(folder, "-m", "no_module").returncode == 1
    assert run(folder).returncode == 2


def shown(*calls: tuple[Any, ...]) -> str:
    """The arguments of a function as they are in a stub, after calls."""

    def f(a: Any, b: Any) -> None: ...

    one = Observed(f.__code__.replace(co_qualname="f"), {"K": 1}, calls=len(calls))
    for call in calls:
        one.note(dict(zip("ab", call, strict=True)), True)
    line = stub([one], "").splitlines()[-1]
    return line[line.index("(") + 1 : line.index("): ...")] if line.startswith("def") else line


def test_sizes() -> None:
    z = np.zeros
    assert shown((z((9, 9)), z(9))) == "a: dc.types.float64[N, N], b: dc.types.float64[N]"
    assert shown((z(9), z(8)), (z(4), z(3))) == "a: dc.types.float64[N], b: dc.types.float64[N - 1]"
    assert shown((z(9), z(8))) == "a: dc.types.float64[N], b: dc.types.float64[M]"
    assert shown((z(9), z(8)), (z(4), z(8))) == "a: dc.types.float64[N], b: dc.types.float64[8]"
    assert shown((z((5, 2)), z((2, 5)))) == "a: dc.types.float64[N, 2], b: dc.types.float64[2, N]"
    assert shown((z(0), z(7)), (z(7), z(7)), (z(7), z(9))) == "a: dc.types.float64[N], b: dc.types.float64[M]"
    many = [(z([5] * 8), z(tuple(range(5, 13)))), (z([6] * 8), z(tuple(range(7, 15))))][:1]
    assert shown(*many).count("N") == 9 and "Q" in shown(*many) and "[N, M, L, P, Q" in shown(*many)


def test_numbers() -> None:
    x = np.ones(3)
    assert shown((x, 1), (x, 2)) == "a: dc.types.float64[3], b: int"
    assert shown((x, 1), (x, 2.0)) == "a: dc.types.float64[3], b: float"
    assert shown((x, True)) == "a: dc.types.float64[3], b: bool"
    assert shown((x, 1j), (x, 2)) == "a: dc.types.float64[3], b: complex"
    assert shown((x, np.int32(2))) == "a: dc.types.float64[3], b: np.int32"
    assert shown(([1, 2, 3], [[1.0], [2.0]])) == "a: dc.types.int64[3], b: dc.types.float64[2, 1]"
    assert shown((dc.asarray(x), x.astype("f4"))) == "a: dc.types.float64[3], b: dc.types.float32[3]"
    assert "b was bool and float" in shown((x, True), (x, 1.0))
    assert "b was 1-dimensional float64 and 2-dimensional float64" in shown((x, x), (x, np.ones((2, 2))))
    assert "b was float32 and float64" in shown((x, np.float32(1)), (x, np.float64(1)))
    assert "b was array of <U1" in shown((x, np.array(["a"])))
    assert "b was list" in shown((x, [1, 2.0]))
    assert "b was an array without axes" in shown((x, np.array(1.0)))


# ---- methods and inner functions ----------------------------------------------------------------------
CLASSES = """
import numpy as np

class Solver:
    def __init__(self, n):
        self.u, self.dt, self.name, self.count = np.ones(n), 0.5, "a", 0

    def step(self, x, k=3):
        self.u += self.dt * k * x
        self.count += 1

    def total(self):
        return self.u.sum()

    def plain(self, k):
        return k

    @staticmethod
    def doubled(x):
        return 2.0 * x

    @classmethod
    def of(cls, x):
        return cls(len(x))

    class Part:
        __slots__ = ("w",)

        def __init__(self, w):
            self.w = w

        def scaled(self, by):
            return self.w * by

class Faster(Solver):
    def step(self, x, k=3):
        super().step(x, k + 1)

def outer(n):
    def inner(y, *, by=1.0):
        return y * by
    def unused(y):
        return y
    return inner(np.ones(n), by=2.0)

def framed(y):
    def mean(z):
        return z.sum() / len(z)
    return mean(y)

def counted(n: int, a):
    return np.full(n, a)

for n in (6, 9):
    s = Solver(n)
    s.step(np.ones(n)); s.total(); s.plain(2); Solver.doubled(np.ones(n)); Solver.of(np.ones(n))
    Solver.Part(np.ones(n)).scaled(np.ones(n)); Faster(n).step(np.ones(n))
    outer(n); framed(np.ones(n)); counted(n, 1.5)
"""


def test_methods_and_inner_functions(tmp_path: Path) -> None:
    (tmp_path / "classes.py").write_text(CLASSES)
    done = run(tmp_path, "classes.py")
    assert done.returncode == 0 and not done.stdout and done.stderr == f"stub: {tmp_path}/classes.hints.pyi\n"
    text = timeless((tmp_path / "classes.hints.pyi").read_text())
    for line in (
        "class Solver:",
        "    def step(self, x: dc.types.float64[N], k: int = ...): ...  # line 8, 4 calls; "
        "self: Solver with self.u: dc.types.float64[N], self.dt: float, self.count: int",
        "    def total(self): ...  # line 12, 2 calls; self: Solver with self.u: dc.types.float64[N]",
        "    @staticmethod\n    def doubled(x: dc.types.float64[N]): ...  # line 18, 2 calls",
        "    @classmethod\n    def of(cls, x: dc.types.float64[N]): ...  # line 22, 2 calls",
        "    class Part:\n        def __init__(self, w: dc.types.float64[N]): ...  # line 29, 2 calls; self: "
        "Part\n"
        "        def scaled(self, by: dc.types.float64[N]): ...",
        "class Faster:\n    def step(self, x: dc.types.float64[N], k: int = ...): ...",
        "def outer(n: int):  # line 39, 2 calls\n    def inner(y: dc.types.float64[N], *, by: float): ...",
        "def framed(y: dc.types.float64[N]):  # line 46, 2 calls\n    def mean(z: dc.types.float64[N]): ...",
        "def counted(n: int, a: float): ...",
    ):
        assert line in text, text
    assert "plain" not in text and "unused" not in text and "__init__(self, n" not in text
    compile(text, "stub", "exec")


# ---- stubs that are used without being named ----------------------------------------------------------
USED = """
import sys
import numpy as np

def stencil(u, v, steps):
    for t in range(steps):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])

class Tools:
    @staticmethod
    def scaled(a, x):
        return a * x

    def twice(self, x):
        return x * 2.0

if __name__ == "__main__":
    for n in (8, 11):
        u, v = np.linspace(0, 1, n), np.zeros(n)
        stencil(u, v, 3)
        Tools.scaled(2.0, u)
        Tools().twice(u)
    if len(sys.argv) > 1:
        stencil(u.astype("f4"), v, 3)
        stencil([1.0, 2.0, 4.0], v[:3], 1) if sys.argv[1] == "list" else None
    print(v)
"""


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "dcarray", *words]
    return subprocess.run(whole, capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, check=False)


@pytest.fixture
def used(tmp_path: Path) -> Path:
    (tmp_path / "used.py").write_text(USED)
    assert run(tmp_path, "used.py").returncode == 0
    return tmp_path


def test_compile_finds_the_stub(used: Path) -> None:
    done = command(used, "compile", "used.py:stencil", "used.py:Tools.scaled", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "double *v" in (used / "out" / "stencil.h").read_text()
    done = command(used, "compile", "used.py:Tools.twice")
    assert (
        done.returncode == 1 and "the argument self has no type, since Tools.twice is a method" in done.stderr
    )
    (used / "used.hints.pyi").unlink()
    done = command(used, "compile", "used.py:stencil")
    assert (
        done.returncode == 1 and "the argument u has no type: annotate it, or let `python -m" in done.stderr
    )


@pytest.mark.parametrize("words", [[], ["wrong"]])
def test_run_finds_the_stub(used: Path, words: list[str]) -> None:
    plain = python("used.py", *words, status=None, cwd=used)
    done = command(used, "run", "used.py", *words)
    assert done.stdout == plain.stdout and done.returncode == plain.returncode == 0 and not done.stderr


@pytest.mark.parametrize(("change", "said"), [
    (lambda s: s, ""),
    (lambda s: s.replace("u:", "w:"), "used.hints.pyi is out of date: it is of stencil(w, v, steps), not "),
    (lambda s: s + "def (", "used.hints.pyi is not a stub"),
    (lambda s: s.replace('dc.symbol("N")', "nothing"), "used.hints.pyi fails: NameError"),
])  # fmt: skip
def test_a_stub_that_does_not_fit(used: Path, change: Any, said: str) -> None:
    stub_file = used / "used.hints.pyi"
    stub_file.write_text(change(stub_file.read_text()))
    done = command(used, "run", "--report", "used.py")
    assert done.returncode == 0 and done.stdout.startswith("[0. ")
    lines = [line for line in done.stderr.splitlines() if "used.hints.pyi" in line]
    if not said:
        assert not lines
        return
    assert any(said in line for line in lines) and len(lines) <= 3
    done = command(used, "compile", "used.py:stencil")
    assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_programs_find_the_stub(used: Path) -> None:
    (used / "user.py").write_text("""
import numpy as np
import dcarray as dc
from used import stencil, Tools

program = dc.program(stencil)
program.compile()
dc.report(reset=True)
for u, v in ((np.ones(7), np.zeros(7)), (np.ones(4, "f4"), np.zeros(4)), ([1.0, 2.0, 3.0, 4.0], np.zeros(4))):
    want = v.copy()
    try:
        stencil(u, want, 2)
    except Exception as error:
        want = type(error)
    try:
        program(u, v, 2)
    except Exception as error:
        v = type(error)
    assert np.array_equal(v, want) if isinstance(want, np.ndarray) else v is want
report = dc.report()
print(report.loops, sum("is expected to be" in one.function for one in report.fallbacks))
""")
    done = subprocess.run(
        [sys.executable, "user.py"], capture_output=True, text=True, cwd=used, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] >= "1" and done.stdout.split()[1] == "1"


SLOW = """
import time
import numpy as np

def long(x):
    time.sleep(0.15)
    for k in range(1, len(x)):
        x[k] += 0.5 * x[k - 1]

def short(x):
    for k in range(1, len(x)):
        x[k] += 0.5 * x[k - 1]

if __name__ == "__main__":
    long(np.ones(50))
    short(np.ones(50))
"""


def test_what_took_long_asks_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    assert run(tmp_path, "slow.py").returncode == 0
    text = (tmp_path / "slow.hints.pyi").read_text()
    assert re.search(r"def long\(.*# line 5, 1 call, 0\.\d+ s", text)
    (tmp_path / "slow.hints.pyi").write_text(text.replace("1 call\n", "1 call, 0.001 s\n"))
    sources, names = SLOW, {"__name__": "slow"}
    made = compile_module(sources, str(tmp_path / "slow.py"), names, False)
    exec(made, names)
    hot = {name: [s.enabled for s in SAMPLER.sites() if s.source.file == str(tmp_path / "slow.py")
                  and s.source.line in lines and s.outer is None]
           for name, lines in (("long", range(5, 9)), ("short", range(10, 13)))}  # fmt: skip
    assert any(hot["long"]) and not any(hot["short"])
