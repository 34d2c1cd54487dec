"""``python -m dcarray run``: run an unmodified script or module in which ``import numpy`` imports dcarray.

This holds for the user's own code; installed libraries and the standard library import NumPy.  Exit status,
tracebacks and ``sys.argv`` are those of plain ``python``.
"""

from __future__ import annotations

import atexit
import builtins
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from dcarray.api.array import evaluate
from dcarray.core import config
from dcarray.core.counters import is_inside, report
from dcarray.distributed import jobs
from dcarray.jit.accelerated_code import set_user_files
from dcarray.jit.imports import MACHINERY, hook_imports
from dcarray.jit.numpy_proxy import patch_array_method

from .user_files import UserFiles

_NAME = "python -m dcarray run"
_USAGE = f"usage: {_NAME} [--report] [--explain FILE] (script.py | -m module) [arguments]"
_HELP = f"""{_USAGE}

Run an unmodified script or module.  In your own code NumPy is dcarray, in installed libraries it is NumPy.

  --report        print dcarray.report() to the standard error when the program ends; as the last argument of
                  all it does so too, and the program gets it as well
  --explain FILE  save the regions that ran, each kind once (.html, .svg or .txt)
  -m MODULE       run a module, as python -m does
"""
_HOOKS = {(MACHINERY, "__import__"), (MACHINERY, "__build_class__")}


_sent: list[str] = []  # the traffic of the ranks, when the program has ended


class Refused(Exception):
    """Exception: the program cannot be run; with the message and exit status of plain python."""


# ---- which NumPy -------------------------------------------------------------------------------------
class _Imports(UserFiles):
    """The ``__import__`` of the process: dcarray for NumPy in the user's files."""

    def install(self) -> None:
        users = self.has
        set_user_files(users)
        hook_imports()
        build = builtins.__build_class__

        def __build_class__(body: Any, name: str, /, *bases: Any, **kwargs: Any) -> Any:
            made = build(body, name, *bases, **kwargs)
            file = body.__globals__.get("__file__")
            return patch_array_method(made) if isinstance(file, str) and users(file) else made

        __build_class__.__code__ = __build_class__.__code__.replace(co_filename=MACHINERY)
        builtins.__build_class__ = __build_class__


# ---- what to run -------------------------------------------------------------------------------------
def _from_spec(spec: ModuleSpec | None, missing: str) -> tuple[CodeType, dict[str, Any]]:
    code = None if spec is None else spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    if code is None or spec is None:
        raise Refused(missing, 1)
    names = {"__spec__": spec, "__loader__": spec.loader, "__file__": spec.origin, "__cached__": spec.cached}
    return code, {**names, "__package__": spec.parent}


def _script(path: str) -> tuple[CodeType, dict[str, Any], str]:
    """Return code and globals of a script, a folder or an archive, and its entry in ``sys.path``."""
    full = os.path.abspath(path)
    finder = pkgutil.get_importer(full)
    if finder is not None:
        sys.path.insert(0, full)
        code, names = _from_spec(finder.find_spec("__main__"), f"can't find '__main__' module in {path!r}")
        return code, names, full
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        raise Refused(f"can't open file {full!r}: [Errno {error.errno}] {error.strerror}", 2) from None
    code = compile(source, full, "exec", dont_inherit=True)
    names = {"__spec__": None, "__loader__": SourceFileLoader("__main__", full), "__file__": full}
    return code, {**names, "__cached__": None, "__package__": None}, os.path.dirname(os.path.realpath(full))


def _module(name: str) -> tuple[CodeType, dict[str, Any]]:
    """Return code and globals of a module, or of a package's ``__main__``."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        why = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        raise Refused(why, 1) from error
    if spec is None:
        raise Refused(f"No module named {name}", 1)
    if spec.submodule_search_locations is None:
        return _from_spec(spec, f"No code object available for {name}")
    inner = f"{name}.__main__"
    missing = f"No module named {inner}; {name!r} is a package and cannot be directly executed"
    return _from_spec(importlib.util.find_spec(inner), missing)


def use_dcarray(root: str | None) -> None:
    """Let ``import numpy`` give dcarray in the user's files from now on."""
    _Imports(root).install()


def execute(
    target: str, is_module: bool, begin: Callable[[], None], prepare: Callable[[str | None], None]
) -> None:
    """Run a script or a module as ``__main__``.

    Parameters
    ----------
    target : str
        A file, or the name of a module, as ``sys.argv[0]`` has it.
    is_module : bool
    begin : callable
        Called right before it runs.
    prepare : callable
        Called before anything of it is looked for, with the folder of the script (None of a module).

    Raises
    ------
    Refused
        If there is no such script or module.
    """
    safe = sys.flags.safe_path
    if is_module:
        prepare(None)
        if not safe:
            sys.path[0] = os.getcwd()
        sys.argv[0] = "-m"
        code, names = _module(target)
        sys.argv[0] = names["__file__"]
    else:
        if not safe:
            del sys.path[0]
        code, names, folder = _script(target)
        if not safe and (not sys.path or sys.path[0] != folder):
            sys.path.insert(0, folder)
        prepare(os.path.dirname(names["__file__"]))
    module = ModuleType("__main__")
    vars(module).update(names, __builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = module
    jobs.begin()
    begin()
    exec(code, vars(module))
    evaluate()  # run what is pending: its errors and warnings are the program's
    _sent.append(jobs.table())


# ---- how it ends -------------------------------------------------------------------------------------
def _stripped(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package's runner."""
    kept = []
    while trace is not None:
        code = trace.tb_frame.f_code
        internal = is_inside(code.co_filename) and "numpy" not in Path(code.co_filename).parts
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
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        sys.exit(130)
    sys.excepthook = lambda *remaining: None
    raise error


def _at_end(show_report: bool, explain: Path | None) -> None:
    """Show the report and the explanation at exit, however the program ends."""
    if explain is not None:
        from .explain import Collection

        collection = Collection()
    if show_report:
        report(reset=True)

    def tell() -> None:
        if explain is not None and jobs.leads():
            collection.explanation().save(explain)
            print(f"regions saved: {explain}", file=sys.stderr)
        if show_report and jobs.leads():
            print(report(), *filter(None, _sent), sep="\n", file=sys.stderr)

    atexit.register(tell)


def main(arguments: list[str]) -> int:
    """Run a script or a module.

    Parameters
    ----------
    arguments : list of str
        Options, the script or ``-m`` and the module, and its own arguments.

    Returns
    -------
    int
        The exit status, unless the program ends by an exception.
    """
    remaining = list(arguments)
    show_report, explain, is_module = False, None, False
    while remaining and remaining[0].startswith("-") and not is_module:
        option = remaining.pop(0)
        name, given, value = option.partition("=")
        if option in ("-h", "--help"):
            print(_HELP, end="")
            return 0
        if option == "--report":
            show_report = True
        elif name == "--explain" and (given or remaining):
            explain = Path(value if given else remaining.pop(0))
        elif option == "-m" and remaining:
            is_module = True
        elif option == "--":
            break
        else:
            wants = option in ("-m", "--explain")
            return _usage(f"{option} wants a value" if wants else f"unknown option {option}")
    if not remaining:
        return _usage("no script and no module given")
    if explain is not None:
        if explain.suffix not in (".html", ".svg", ".txt"):
            return _usage(f"--explain {explain}: must end in .html, .svg or .txt")
        if not explain.absolute().parent.is_dir():
            return _usage(f"--explain {explain}: there is no such folder")
        explain = explain.absolute()
    sys.argv = remaining
    show_report = show_report or remaining[-1] == "--report"
    try:
        execute(remaining[0], is_module, lambda: _at_end(show_report, explain), use_dcarray)
    except Refused as refused:
        message, status = refused.args
        print(f"{_NAME}: {message}", file=sys.stderr)
        return int(status)
    except SystemExit:
        raise
    except BaseException as error:
        fail(error)
    return 0


def _usage(problem: str) -> int:
    print(f"{_USAGE}\n{_NAME}: {problem}", file=sys.stderr)
    return 2
