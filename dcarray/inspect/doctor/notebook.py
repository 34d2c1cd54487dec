"""The ``%%dcarray`` magic of notebooks and IPython: a cell under the doctor, or as compiled code.

The cell runs once in the notebook as usual.  The gain of compiled code is measured in a forked child, which
has the notebook's variables from before, and returns nothing but times.
"""

from __future__ import annotations

import ast
import json
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from traceback import walk_stack
from typing import Any

from dcarray.core import config
from dcarray.core.counters import counters
from dcarray.inspect.user_files import UserFiles
from dcarray.jit.decorator import accelerate

from .clock import Clock
from .diagnosis import diagnosis
from .page import table
from .runs import Run, run_of
from .text import text
from .ways import Gain

__all__ = ["load"]

_USAGE = "%%dcarray [run | --compare none]"
_NAME = "%%dcarray run"
_PATIENCE = 30.0, 10.0  # seconds, and times what the cell took, after which the child is given up


class Report:
    """The doctor's findings for a cell: a table in a notebook, text in a terminal."""

    def __init__(self, shown: str, html: str) -> None:
        self._shown, self._html = shown, html

    def __repr__(self) -> str:
        return self._shown

    def _repr_html_(self) -> str:
        return self._html


def load(shell: Any) -> None:
    """Add the magic ``%%dcarray`` to a shell of IPython.

    Raises
    ------
    ImportError
        If there is no IPython.
    """
    try:
        from IPython.core.error import UsageError
        from IPython.display import display
    except ImportError as error:
        raise ImportError("%%dcarray needs IPython: pip install 'dcarray[notebook]'") from error

    def dcarray(line: str, cell: str) -> None:
        """Run a cell under the doctor (%%dcarray), without a second run of it (%%dcarray --compare none), or
        as compiled code (%%dcarray run)."""
        words = line.split()
        if words == ["run"]:
            compiled_run(shell, *_source(shell, cell), shell.displayhook)
        elif words in ([], ["--compare", "run"], ["--compare", "none"]):
            display(examined(shell, cell, "none" not in words))
        else:
            raise UsageError(f"usage: {_USAGE}")

    shell.register_magic_function(dcarray, "cell")


def compiled_run(shell: Any, source: str, file: str, shows: Callable[[Any], None]) -> None:
    """Run a cell, and functions of earlier cells that it calls, with their hot parts as compiled code.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
    source, file : str
        The cell's text and file name, from `_source`.
    shows : callable
        Called with the value of the cell's last expression.
    """
    from dcarray.jit.loops.sites.modules import compile_module

    names, body = shell.user_ns, ast.parse(source).body
    last = body[-1] if body else None
    apart = isinstance(last, ast.Expr) and all(one.end_lineno != last.lineno for one in body[:-1])
    rest = source if last is None or not apart else "\n".join(source.split("\n")[: last.lineno - 1]) + "\n"
    with accelerate(shell.user_module):
        eagerly = config.current().jit == "eager"
        exec(compile_module(rest, file, names, is_script=False, eagerly=eagerly), names)
        if isinstance(last, ast.Expr) and apart:
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
            if not source.rstrip().endswith(";"):
                shows(value)


def examined(shell: Any, cell: str, compares: bool) -> Report:
    """Run a cell in the notebook, and in a child as compiled code; return the report of both."""
    source, here = _source(shell, cell)
    files, outer = UserFiles(None), {frame.f_code.co_filename for frame, _ in walk_stack(None)}

    def is_own(file: str) -> bool:
        known = file.startswith("<ipython-input-") or (not file.startswith("<") and files.has(file))
        return known and file not in outer  # what has called the magic

    child, gains = None, []
    if compares:
        try:
            child = _Child(lambda: _compiled(shell, source, here, is_own))
        except (OSError, AttributeError) as error:  # AttributeError: a system that does not fork
            gains = [Gain("run", _NAME, None, f"no process can be started: {error}")]
    clock = Clock(is_own, threading.current_thread() is threading.main_thread())
    try:
        clock.begin()
        try:
            success = shell.run_cell(cell).success
        finally:
            plain = run_of(0, clock.end())
        if child is not None:
            gains = [_gain(child, plain, success)]
    finally:
        if child is not None:
            child.end()

    def called(file: str) -> str:
        known = shell.compile.format_code_name(file)
        number = file.removeprefix("<ipython-input-").partition("-")[0]
        other = known[1] if known else f"In[{number}]" if file.startswith("<") else os.path.basename(file)
        return "cell" if file == here else str(other)

    lines = diagnosis(plain, gains[0].run if gains else None, called)
    return Report(text(plain, gains, lines, called), table(plain, gains, lines))


def _source(shell: Any, cell: str) -> tuple[str, str]:
    """Return the Python text of a cell, and the name that IPython has for it as a file."""
    source = shell.transform_cell(cell)
    return source, shell.compile.cache(source, shell.execution_count, raw_code=cell)


def _gain(child: _Child, plain: Run, success: bool) -> Gain:
    if not success:
        return Gain("run", _NAME, None, "the cell raised an error")
    told = child.told(max(_PATIENCE[0], _PATIENCE[1] * plain.seconds))
    return Gain("run", _NAME, None, told) if isinstance(told, str) else Gain("run", _NAME, run_of(0, told))


def _compiled(shell: Any, source: str, file: str, is_own: Callable[[str], bool]) -> dict[str, Any]:
    """Run a cell as compiled code, in the child; return the measurements."""
    from dcarray.inspect.hot_lines import hot_lines
    from dcarray.jit.loops.sites.sampler import SAMPLER

    shell.display_pub.publish = lambda *given, **named: None
    SAMPLER.lines.clear()
    for site in SAMPLER.sites():  # of earlier cells
        site.runs, site.compiled = 0, 0.0
    compiled, known = counters.compiles, counters.cache_hits + counters.disk_hits
    clock = Clock(is_own, traced=False)
    clock.begin()
    compiled_run(shell, source, file, lambda value: None)
    told = clock.end()
    told["hot"] = [list(one) for one in hot_lines()]
    told["compiled"] = counters.compiles - compiled
    told["known"] = counters.cache_hits + counters.disk_hits - known
    return told


class _Child:
    """A fork of this process that waits for `told`, and then calls a function.

    Parameters
    ----------
    does : callable
        The function that the child calls; its result must be a JSON value.
    """

    def __init__(self, does: Callable[[], Any]) -> None:
        waits, self._asks = os.pipe()
        self._answer, answers = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads; none of them is needed there
            self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._asks)
                if os.read(waits, 1):
                    _answer(does, answers)
            finally:
                os._exit(0)
        os.close(waits)
        os.close(answers)

    def told(self, patience: float) -> Any:
        """Let the child run its function and return the result; or a text, the reason, if there is none."""
        os.write(self._asks, b"!")
        due, parts = time.monotonic() + patience, []
        try:
            while select.select([self._answer], [], [], max(0.0, due - time.monotonic()))[0]:
                parts.append(os.read(self._answer, 1 << 16))
                if not parts[-1]:
                    return json.loads(b"".join(parts)) if len(parts) > 1 else "the second run has crashed"
        except KeyboardInterrupt:
            return "it was interrupted"
        return f"the second run took more than {patience:.0f} s"

    def end(self) -> None:
        """End the child."""
        os.close(self._asks)
        os.close(self._answer)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _answer(does: Callable[[], Any], answers: int) -> None:
    """Call the function in the child, without input and output, and send the result."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    try:
        told = does()
    except BaseException as error:
        told = f"the second run raised {type(error).__name__}"
    with os.fdopen(answers, "w") as file:
        json.dump(told, file)
