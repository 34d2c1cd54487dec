"""``python -m dcarray run``: scripts and modules as plain python runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fresh import python

from dcarray.core.native import BUILT

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("DCARRAY_")}
BUFFERED = {k: v for k, v in ENVIRONMENT.items() if k != "PYTHONUNBUFFERED"}

HELPER = """
import numpy as np
from numpy import zeros
import numpy.linalg as la
from numpy.random import default_rng
kinds = {type(v).__module__ for v in (np.ones(3), zeros(2), la.inv(np.eye(2)), default_rng(1).random(3))}
"""
SCRIPT = """
import sys, threading; assert "numpy" not in sys.modules  # it may set OMP_NUM_THREADS
import numpy, helper, package.inner
import numpy.linalg
import numpy as np
import scipy.linalg
def work():
    import numpy as inside
    return type(inside.ones(2)).__module__
assert helper.kinds == {"numpy"} == {work()}, helper.kinds
assert package.inner.kind == "numpy" == type(numpy.linalg.inv(np.eye(2))).__module__
assert "dcarray.api" not in sys.modules
assert np.__name__ == "numpy" and type(np) is type(sys), type(np)
assert type(scipy.linalg.inv([[2.0]])).__module__ == "numpy"
assert isinstance(scipy.linalg.inv([[2.0]]), np.ndarray) and isinstance(np.ones(2), np.ndarray)
class Answering:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)
class Sub(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = (x.view(np.ndarray) if isinstance(x, Sub) else x for x in inputs)
        return getattr(ufunc, method)(*plain, **kwargs)
sub = np.ones(3).view(Sub)
seen = sub.view(np.ndarray)
assert type(seen) is np.ndarray and repr(seen) == "array([1., 1., 1.])"
assert type(sub + 1) is type(seen + np.ones(3)) is np.ndarray
assert np.add(seen, 1, out=seen) is seen and sub.tolist() == [2, 2, 2]
assert np.ma.array([1, 2], mask=[0, 1]).view(np.ndarray).tolist() == [1, 2]
assert np.sum(Answering()) == 3 and scipy.linalg.norm(Answering()) == 5**0.5
assert __import__("pickle").loads(__import__("pickle").dumps(work)) is work
print(__name__, __file__, sys.argv, sys.path[0], __spec__, __package__, sorted(globals()))
x = np.linspace(0, 1, 100_000)
print(np.sqrt(x * x + 1)[-1], np.__version__)
"""
CATCHING = """
import doctest, io, logging, re, sys, traceback, unittest
import numpy as np
def total(a, n):
    s = 0.0
    for i in range(n):
        s += a[i] * 2.0
    return s
def documented():
    '''>>> total(np.ones(3), 4)'''
class Cases(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total(np.ones(3), 4), 6)
def unfitting():
    return np.ones(3) + np.ones(4)
for call in (lambda: total(np.ones(2000), 2001), lambda: __import__("failing_module"), unfitting):
    try:
        call()
    except Exception:
        print(traceback.format_exc())
        print([frame.filename for frame in traceback.extract_tb(sys.exc_info()[2])])
        logging.exception("it has failed")
        sys.stdout.write("".join(traceback.format_exception(*sys.exc_info())))
doctest.testmod()
said = io.StringIO()
unittest.main(exit=False, testRunner=unittest.TextTestRunner(said))
print(re.sub("in .*s", "", said.getvalue()))
"""
FAILING = """
import numpy as np
def work(a):
    return a + np.ones((4000, 5))
try:
    import broken
except ZeroDivisionError as error:
    raise ValueError("first") from error
finally:
    work(np.ones((2000, 30)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("import numpy as np\nkind = type(np.ones(2)).__module__\n")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys; from . import inner; print(sys.argv, inner.kind)"
    )
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "broken.py").write_text("def f():\n    1 / 0\nf()\n")
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "ending.py").write_text(
        "import sys, atexit\natexit.register(print, 'at exit')\nprint('on')\n"
        "ends = {'int': KeyboardInterrupt, 'text': SystemExit('bye'), '3': SystemExit(3), '': SystemExit}\n"
        "raise ends[sys.argv[1]]\n"
    )
    return tmp_path


def _python(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)


def _ours(folder: Path, *arguments: str) -> Any:
    return _python(folder, "-m", "dcarray", "run", *arguments)


def test_a_script_sees_what_python_shows_it(folder: Path) -> None:
    ours = _ours(folder, "script.py", "--report", "-x")
    assert ours.returncode == 0, ours.stderr
    assert ours.stderr == ""
    plain = _python(folder, "-c", "pass")
    (folder / "script.py").write_text("\n".join(k for k in SCRIPT.splitlines() if not k.startswith("assert")))
    plain = _python(folder, "script.py", "--report", "-x")
    assert ours.stdout == plain.stdout and "'--report', '-x'" in plain.stdout


@pytest.mark.parametrize("name", ["failing.py", "broken.py"])
def test_tracebacks_are_those_of_python(folder: Path, name: str) -> None:
    ours, plain = _ours(folder, name), _python(folder, name)
    assert ours.returncode == plain.returncode == 1
    assert ours.stderr == plain.stderr and "Traceback" in plain.stderr


def test_tracebacks_that_a_program_prints_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what it has caught: by traceback, logging, doctest and unittest, and of modules that fail."""
    (folder / "failing_module.py").write_text("import numpy as np\nnp.ones(3)[np.arange(5)]\n")
    (folder / "catching.py").write_text(CATCHING)
    monkeypatch.setitem(ENVIRONMENT, "DCARRAY_JIT", "eager")
    ours, plain = _ours(folder, "catching.py"), _python(folder, "catching.py")
    assert ours.stderr == plain.stderr and plain.stderr.count("Traceback") == 3
    assert ours.stdout == plain.stdout and plain.stdout.count("Traceback") == 8


def test_a_syntax_error(folder: Path) -> None:
    (folder / "bad.py").write_text("x = (\n")
    (folder / "importing.py").write_text(
        "import traceback\ntry:\n    import bad\nexcept SyntaxError:\n    traceback.print_exc()\nimport bad\n"
    )
    for name in ("bad.py", "importing.py"):
        assert _ours(folder, name).stderr == _python(folder, name).stderr


@pytest.mark.parametrize("how", ["int", "text", "3", ""])
def test_the_end_of_a_program(folder: Path, how: str) -> None:
    ours, plain = _ours(folder, "ending.py", how), _python(folder, "ending.py", how)
    assert ours.returncode == plain.returncode
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


def test_modules_packages_and_folders(folder: Path) -> None:
    assert _ours(folder, "-m", "package", "a", "--report").stdout == (
        f"['{folder / 'package' / '__main__.py'}', 'a', '--report'] numpy\n"
    )
    (folder / "program").mkdir()
    (folder / "program" / "near.py").write_text(HELPER)
    (folder / "program" / "__main__.py").write_text("import near, sys; print(near.kinds, sys.path[0])")
    assert _ours(folder, "program").stdout == f"{{'numpy'}} {folder / 'program'}\n"
    assert _ours(folder, "-m", "helper").returncode == 0


def test_a_module_that_is_run_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "DCARRAY_JIT", "eager")
    (folder / "summing.py").write_text(
        "import numpy as np\ns = 0.0\nfor i in range(9000):\n    s += np.sqrt(i)\n"
    )
    assert "loops run as compiled code                                             1" in (
        _ours(folder, "-m", "summing", "--report").stderr
    )


def test_report_and_regions_also_after_an_exception(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "DCARRAY_JIT", "eager")  # the loop is too short to be hot
    source = """
import numpy as np
x = np.ones(50_000)
for k in range(1, 50_000):
    x[k] = x[k - 1] * 0.5 + x[k]
print(x[-1])
raise KeyError("no")
"""
    (folder / "work.py").write_text(source)
    done = _ours(folder, "--report", "--explain=out.html", "work.py")
    assert done.returncode == 1 and "KeyError" in done.stderr
    assert "dcarray report" in done.stderr and "work.py" in done.stderr
    page = (folder / "out.html").read_text()
    assert "<svg" in page and "work.py:4" in page
    assert done.stdout == _python(folder, "work.py").stdout


def test_warnings_are_those_of_python(folder: Path) -> None:
    (folder / "late.py").write_text("import numpy as np\nx = np.zeros(50_000)\nx = 1 / x\n")
    ours, plain = _ours(folder, "late.py"), _python(folder, "late.py")
    assert ours.stderr == plain.stderr and "late.py:3: RuntimeWarning: divide by zero" in plain.stderr


@pytest.mark.parametrize("jit", ["off", "background", "eager"])
def test_hot_loops_and_runs_give_what_python_gives(folder: Path, jit: str) -> None:
    (folder / "beside.py").write_text("""
import numpy as np
def smooth(x, n):
    for t in range(n):
        y = np.empty_like(x)
        y[1:-1] = (x[:-2] + x[2:]) / 2
        y[0] = y[-1] = t
        x = y
    return x
""")
    (folder / "hot.py").write_text("""import sys; assert "numpy" not in sys.modules
import numpy as np
from beside import smooth
x = np.linspace(0, 1, 3000)
total = 0.0
for k in range(20):
    x = smooth(x, 20)
    for i in range(len(x)):
        if x[i] > 0.5:
            total = total + x[i] * k
print(total, x.sum(), k, i)
""")
    environment = {**ENVIRONMENT, "DCARRAY_JIT": jit}
    command = [sys.executable, "-m", "dcarray", "run", "hot.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=200)
    assert done.stdout == _python(folder, "hot.py").stdout != "" and not done.stderr


ENDING = """
import atexit, inspect, sys, warnings
import numpy as np
class Thing:
    def __init__(self, name):
        self.name, self.x = name, np.ones(3)
    def __del__(self):
        print("deleted", self.name)
    def work(self, n):
        total = 0
        for i in range(n):
            total += i * 3 % 7
        return total
written = open("written.txt", "w")
thing, others = Thing(1), {"a": [Thing(2)]}
print(sum(thing.work(5000) for _ in range(60)), file=written)
def depth(n):
    global deepest
    deepest = n
    depth(n + 1)
try:
    depth(1)
except RecursionError:
    print(deepest)
def named():
    print(len(inspect.stack()), sys._getframe(1).f_back)
    warnings.warn("from beneath", stacklevel=9)
named()
atexit.register(named)
count = 0
for i in range(len(sys.argv) * 20000):
    count += i
print(count)
"""


@pytest.mark.skipif(not BUILT, reason="the C module is not built")
@pytest.mark.parametrize("jit", ["off", "background", "eager"])
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_beneath_a_program_and_its_objects_end_with_it(
    folder: Path, jit: str, fails: bool
) -> None:
    (folder / "ending.py").write_text(ENDING + "1 / 0\n" * fails)
    wanted = _python(folder, "ending.py")
    text = (folder / "written.txt").read_text()
    (folder / "written.txt").unlink()
    got = subprocess.run(
        [sys.executable, "-m", "dcarray", "run", "ending.py"], cwd=folder, capture_output=True, text=True,
        env={**ENVIRONMENT, "DCARRAY_JIT": jit, "DCARRAY_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    assert got.stdout.splitlines()[-2:] == ["deleted 1", "deleted 2"]
    assert (got.stdout, got.returncode) == (wanted.stdout, wanted.returncode)
    assert (folder / "written.txt").read_text() == text


@pytest.mark.parametrize(("arguments", "status", "said"), [
    (("missing.py",), 2, "can't open file"),
    ((".",), 1, "can't find '__main__' module in '.'"),
    (("-m", "missing"), 1, "No module named missing"),
    (("-m", "missing.inner"), 1, "No module named 'missing'"),
    (("-m", "program"), 1, "'program' is a package and cannot be directly executed"),
    ((), 2, "no script and no module given"),
    (("--nonsense", "script.py"), 2, "unknown option --nonsense"),
    (("-m",), 2, "-m wants a value"),
    (("--explain", "x.pdf", "script.py"), 2, "must end in .html, .svg or .txt"),
    (("--explain", "no/x.html", "script.py"), 2, "there is no such folder"),
])  # fmt: skip
def test_what_cannot_be_run(folder: Path, arguments: tuple[str, ...], status: int, said: str) -> None:
    (folder / "program").mkdir()
    (folder / "program" / "__init__.py").write_text("")
    done = _ours(folder, *arguments)
    assert done.returncode == status and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("info",), ("run", "--help")])
def test_whoever_reads_the_output_may_go(folder: Path, arguments: tuple[str, ...]) -> None:
    done = _unread(folder, "-m", "dcarray", *arguments)
    assert done.stderr == "" and done.returncode == 141


def _unread(folder: Path, *arguments: str) -> Any:
    """Run Python with an output that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        return subprocess.run(
            [sys.executable, *arguments], stdout=closed, stderr=subprocess.PIPE, cwd=folder,
            env=BUFFERED, text=True, check=False,
        )  # fmt: skip


LOGGER = """
import sys
class Logger:
    def __init__(self, inner): self.inner = inner
    def write(self, text): self.inner.write(text)
    def flush(self): self.inner.flush()
sys.stdout = Logger(sys.stdout)
print("said")
sys.exit(3)
"""
HOOK = """
import sys
def hook(kind, error, trace):
    print("hook", sys.last_type, trace is sys.last_traceback, trace.tb_lineno, trace.tb_next)
    {}
sys.excepthook = hook
1 / 0
"""


@pytest.mark.parametrize("program", [
    "import sys\nfor _ in range(100_000): print(_)\nsys.exit(3)", "print(1); import sys; sys.exit(3)",
    "import os\ntry:\n    for _ in range(9999): print('a word')\nexcept BrokenPipeError:\n    os._exit(7)",
    "print('first'); 1 / 0", "import sys; print(1); sys.stdout.detach(); sys.exit(3)",
    "import sys; print(1); del sys.stdout; sys.exit(3)", LOGGER, HOOK.format(""), HOOK.format("[][1]"),
    HOOK.format("sys.exit(9)"), "import sys; del sys.excepthook; 1 / 0",
])  # fmt: skip
def test_output_and_errors_at_the_end(folder: Path, program: str) -> None:
    """Which come in Python's order, also where the output is another object, or has no reader."""
    (folder / "x.py").write_text(program)
    both = []
    for way in ((), ("-m", "dcarray", "run")):
        done = subprocess.run(
            [sys.executable, *way, "x.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
            env=BUFFERED, text=True, check=False,
        )  # fmt: skip
        unread = _unread(folder, *way, "x.py")
        said = re.sub("0x[0-9a-f]+", "", unread.stderr)
        both.append((done.stdout, done.returncode, said, unread.returncode))
    assert both[0] == both[1]


def test_another_broken_pipe_is_an_error(folder: Path) -> None:
    (folder / "pipe.py").write_text("import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')\n")
    ours, plain = _ours(folder, "pipe.py"), _python(folder, "pipe.py")
    assert ours.returncode == plain.returncode == 1 and ours.stderr == plain.stderr


@pytest.mark.parametrize("command", [("-m", "dcarray", "run"), ("-m", "dcarray", "run", "--report")])
def test_modules_that_hide_those_of_python(folder: Path, command: tuple[str, ...]) -> None:
    """As in a language's interpreter, which has modules ``ast`` and ``token``."""
    for name in ("ast", "token", "select", "signal", "random", "threading"):
        (folder / f"{name}.py").write_text("print(__name__)\nnames = 'its own'\n")
    (folder / "main.py").write_text("import ast, token, signal, random\nprint(ast.names, random.names)\n")
    done = python(*command, "main.py", status=None, cwd=folder)
    assert done.stdout == "ast\ntoken\nsignal\nrandom\nits own its own\n"
    assert bool(done.stderr) == ("--report" in command)


def test_help(folder: Path) -> None:
    assert "--explain FILE" in _ours(folder, "--help").stdout
    assert "run" in _python(folder, "-m", "dcarray", "--help").stdout


def test_pytest_as_the_program(folder: Path) -> None:
    (folder / "test_it.py").write_text(
        "import numpy as np\ndef test():\n    assert type(np.ones(2)).__module__ == 'numpy'\n"
    )
    done = _ours(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert done.returncode == 0, done.stdout
