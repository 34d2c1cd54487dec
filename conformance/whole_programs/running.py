"""Runs a program in separate processes: as it is, by ``dcarray run``, and accelerated; compares the outputs.

The processes are forked, so that NumPy and dcarray are loaded once; with ``whole`` they are processes like
those of users.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import re
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dcarray as dc

from .writer import HEAD

__all__ = ["JITS", "MODES", "Runs", "decorated", "difference_of"]

MODES = {"run": ("run",), "accelerate": ("decorated", "module"), "both": ("run", "decorated", "module")}
JITS: dict[str, dict[str, str]] = {
    "background": {"DCARRAY_JIT": "background"},
    "cached": {"DCARRAY_JIT": "background"},
    "eager": {"DCARRAY_JIT": "eager"},
    "recorded": {"DCARRAY_JIT": "eager", "DCARRAY_EAGER_BELOW": "0"},
}
LIMIT = 120  # seconds of a process
MEMORY = 8 << 30  # bytes that a process may map besides those that it has; for more it gets a MemoryError
# Functions that are not decorated, besides those of `HEAD`: what calls the others, and what these call back.
_KEPT = re.compile("main|scene|tick|cb|child")


def decorated(source: str) -> str:
    """Return the program with its functions and methods that compute decorated, except generators."""
    body = ast.parse(source).body
    given = {node.name for node in ast.parse(HEAD).body if isinstance(node, ast.FunctionDef)}
    found = [*body, *(node for part in body if isinstance(part, ast.ClassDef) for node in part.body)]
    lines = source.splitlines()
    for node in sorted(found, key=lambda node: -node.lineno):
        if (
            not isinstance(node, ast.FunctionDef)
            or node.name in given
            or _KEPT.match(node.name)
            or _gives(node)
        ):
            continue
        lines.insert(node.lineno - 1, " " * node.col_offset + "@dc.accelerate")
    return "\n".join(["import dcarray as dc", *lines, ""])


def _gives(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


# ---- ways to run a program -----------------------------------------------------------------------------
def _as_it_is(path: Path) -> None:
    sys.modules.pop("dcarray", None)  # what the program asks to know whether it has to wait
    runpy.run_path(str(path), run_name="__main__")


def _accelerated(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


def _by_the_runner(path: Path) -> None:
    sys.argv[:] = ["dcarray", "run", str(path)]
    runpy.run_module("dcarray", run_name="__main__", alter_sys=False)


def as_a_module(path: Path | str) -> None:
    """Run a program's ``main``, accelerated as a module."""
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = sys.modules["__main__"] = module  # what a spawned child looks for
    spec.loader.exec_module(module)
    dc.accelerate(module)
    module.main()


_WAYS: dict[str, Callable[[Path], None]] = {
    "plain": _as_it_is,
    "run": _by_the_runner,
    "decorated": _accelerated,
    "module": as_a_module,
}
_MODULE = "import sys; from conformance.whole_programs import running; running.as_a_module(sys.argv[1])"
_COMMANDS = {"plain": [], "run": ["-m", "dcarray", "run"], "decorated": [], "module": ["-c", _MODULE]}


def _child(way: str, path: Path, environment: dict[str, str], output: Path) -> None:
    """Run a program in one way in this forked process, with output to a file."""
    code = 1
    try:
        signal.alarm(LIMIT)
        limit_memory()
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.environ.update(environment)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.argv[:] = [str(path)]
        sys.path.insert(0, str(path.parent))
        _WAYS[way](path)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0) if isinstance(end.code, int | None) else 1
    except BaseException as error:
        sys.stdout.write(_last(error))
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)


def limit_memory() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = MEMORY + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))


def _last(error: BaseException) -> str:
    return "uncaught " + traceback.format_exception_only(error)[-1]


def _forked(way: str, path: Path, environment: dict[str, str]) -> str:
    output = path.with_suffix(".out")
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        _child(way, path, environment, output)
    _, status = os.waitpid(child, 0)
    return output.read_text() + f"exit status {os.waitstatus_to_exitcode(status)}\n"


def _started(way: str, path: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, *_COMMANDS[way], str(path)]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        env={**os.environ, **environment, "PYTHONPATH": paths},
        preexec_fn=limit_memory,
    )
    said = [line for line in done.stderr.splitlines() if line and not line.startswith(" ")]
    last = f"uncaught {said[-1]}\n" if said and done.returncode else ""
    return f"{done.stdout}{last}exit status {done.returncode}\n"


# ---- comparing -----------------------------------------------------------------------------------------
_ROUGH = re.compile(r"~([^~]+)~")


def difference_of(want: str, got: str, types: bool = False) -> str | None:
    """Return the first line in which two outputs differ, as text, or None.

    Parameters
    ----------
    want, got : str
    types : bool
        Is an array that says that it is one of NumPy's, but whose class is another's, a difference?
    """
    if not types:
        got = got.replace("dcarray.api.array.ndarray", "numpy.ndarray")
    for one, other in itertools.zip_longest(want.splitlines(), got.splitlines(), fillvalue="(nothing)"):
        if one != other and not _near(one, other):
            return f"{other}\n    instead of\n{one}"
    return None


def _near(one: str, other: str) -> bool:
    if _ROUGH.sub("~", one) != _ROUGH.sub("~", other):
        return False
    pairs = zip(_ROUGH.findall(one), _ROUGH.findall(other), strict=True)
    return all(
        a == b or abs(float(a) - float(b)) <= 1e-9 * max(abs(float(a)), abs(float(b))) for a, b in pairs
    )


@dataclass
class Runs:
    """The ways in which programs run, and their options."""

    mode: str = "both"  # one of `MODES`
    # Some of `JITS`: ``cached`` is a second run with the cache of the first.
    jits: Sequence[str] = tuple(JITS)
    whole: bool = False  # are processes started, not forked?
    types: bool = False  # as in `difference_of`

    def differences(self, source: str, only: tuple[str, str] | None = None) -> Iterator[tuple[str, str, str]]:
        """Run a program in each way, and yield those that differ.

        Parameters
        ----------
        source : str
        only : (str, str), optional
            Run only this way, with this ``jit``, and the program as it is written only once.

        Yields
        ------
        (str, str, str)
            The way, the ``jit``, and the difference.
        """
        run = _started if self.whole else _forked
        folder = Path(tempfile.mkdtemp())
        try:
            path = folder / "program.py"
            path.write_text(source)
            want = run("plain", path, {})
            unsteady = None if only else difference_of(want, run("plain", path, {}))
            if unsteady is not None:
                raise ValueError(f"not the same every time: {unsteady}")
            changed = folder / "accelerated" / "program.py"
            changed.parent.mkdir()
            changed.write_text(decorated(source))
            for way in MODES[self.mode] if only is None else only[:1]:
                for jit in self.jits if only is None else only[1:]:
                    cache = folder / f"{way}-{jit.replace('cached', 'background')}"
                    environment = {**JITS[jit], "DCARRAY_CACHE_DIR": str(cache)}
                    file = changed if way == "decorated" else path
                    if jit == "cached" and not cache.exists():
                        run(way, file, environment)
                    text = difference_of(want, run(way, file, environment), self.types)
                    if text is not None:
                        yield way, jit, text
        finally:
            shutil.rmtree(folder, ignore_errors=True)
