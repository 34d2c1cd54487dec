"""How a program ends: what is written then, and the error that has ended it, as plain Python shows it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

from dcarray.core import config
from dcarray.core.own_files import is_inside

__all__ = ["MACHINERY", "fail", "flush"]

MACHINERY = "<frozen importlib._bootstrap>"
_HOOKS = {(MACHINERY, "__import__"), (MACHINERY, "__build_class__")}
_show = sys.__excepthook__


def flush() -> None:
    """Write out what the program has said, as plain Python does when its code has ended."""
    for name in ("stderr", "stdout"):
        with suppress(BaseException):  # the program may have put anything in its place
            getattr(sys, name).flush()


def _stripped(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package's runner."""
    kept = []
    while trace is not None:
        code = trace.tb_frame.f_code
        internal = is_inside(code.co_filename) and "numpy" not in code.co_filename.split(os.sep)
        if not internal and (code.co_filename, code.co_name) not in _HOOKS:
            kept.append(trace)
        trace = trace.tb_next
    for one in reversed(kept):
        trace = TracebackType(trace, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return trace


def _strip(error: BaseException | None, seen: set[int]) -> None:
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _stripped(error.__traceback__)
        _strip(error.__cause__, seen)
        error = error.__context__


def fail(error: BaseException) -> NoReturn:
    """Print an error and exit, as plain python does."""
    if not config.current().debug:
        _strip(error, set())
    trace, missing = error.__traceback__, object()
    hook: Any = vars(sys).get("excepthook", missing)

    def show(kind: type[BaseException], error: BaseException, longer: TracebackType | None) -> None:
        """Call the program's hook, in Python's place, without the frames that have been added."""
        error.__traceback__ = sys.last_traceback = trace
        if hook is missing:
            del sys.excepthook
            print("sys.excepthook is missing", file=sys.stderr)
            return _show(kind, error, trace)
        sys.excepthook = hook
        try:
            hook(kind, error, trace)
        except SystemExit:
            raise
        except BaseException as second:
            second.__traceback__ = second.__traceback__ and second.__traceback__.tb_next
            print("Error in sys.excepthook:", file=sys.stderr)
            _show(type(second), second, second.__traceback__)
            print("\nOriginal exception was:", file=sys.stderr)
            _show(kind, error, trace)

    sys.excepthook = show
    raise error
