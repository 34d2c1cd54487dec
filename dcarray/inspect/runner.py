"""``python -m dcarray run``: run an unmodified script or module, its hot parts as compiled code.

The script, and modules beside it, get sites (`dcarray.jit.loops.sites`).  On a device, and where several
ranks run the program, ``import numpy`` imports dcarray in the user's own code instead, so that its arrays are
wrapped.  Exit status, tracebacks and ``sys.argv`` are those of plain ``python``.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from dcarray.core import config, floor
from dcarray.core.counters import note, report
from dcarray.core.native import BUILT
from dcarray.core.pipes import quietly
from dcarray.core.processes import communicator

from .endings import fail, flush
from .user_files import UserFiles, hidden_modules

if TYPE_CHECKING:
    from dcarray.jit.loops.sites.verdicts import Verdict
if BUILT:
    from dcarray._native.extension import run_as_first
else:
    run_as_first = exec  # type: ignore[assignment]

_NAME = "python -m dcarray run"
_USAGE = f"usage: {_NAME} [--report] [--explain FILE] [--also NAME] (script.py | -m module) [arguments]"
_HELP = f"""{_USAGE}

Run an unmodified script or module.  What is hot in it, and in modules beside it, runs as compiled code.

  --report        print dcarray.report() to the standard error when the program ends; as the last argument of
                  all it does so too, and the program gets it as well
  --also NAME     a package whose code is compiled, too; may be given several times
  --explain FILE  save the regions that ran, each kind once (.html, .svg or .txt)
  -m MODULE       run a module, as python -m does
"""
_sent: list[str] = []  # the traffic of the ranks, when the program has ended


class Refused(Exception):
    """Raised when the program cannot be run; it has plain Python's message and exit status."""


Compiler = Callable[[str | bytes, str, dict[str, Any]], CodeType]
"""Gives the code of a source, its file, and the global names with which it runs."""


# ---- what to run -------------------------------------------------------------------------------------
_HAS_CACHED = sys.version_info < (3, 15)


def plain(source: str | bytes, file: str, names: dict[str, Any]) -> CodeType:
    """Compile a source without sites."""
    return compile(source, file, "exec", dont_inherit=True)


def _from_spec(spec: ModuleSpec | None, missing: str, names: dict[str, Any], compiler: Compiler) -> CodeType:
    """Return the code of a module to be run, and put the module's attributes (``__file__`` ...) among its
    global names."""
    loader: Any = None if spec is None else spec.loader
    if spec is not None:
        names.update(__spec__=spec, __loader__=loader, __file__=spec.origin, __package__=spec.parent)
        names.update({"__cached__": spec.cached} if _HAS_CACHED else {})
        if type(loader) is SourceFileLoader or hasattr(loader, "has_sites"):
            return compiler(loader.get_data(loader.path), loader.path, names)
        code = None if loader is None else loader.get_code(spec.name)
        if code is not None:
            return code  # type: ignore[no-any-return]
    raise Refused(missing, 1)


def _absolute(path: str) -> str:
    """Return a path as plain Python makes it absolute: ``link/..`` stays, since a link may lead anywhere."""
    with suppress(OSError):  # the working folder is deleted
        return os.getcwd() if path == "." else os.path.join(os.getcwd(), path)
    return path


def _first_entry(target: str, is_module: bool) -> str:
    """Return the folder that comes first in ``sys.path``."""
    full = _absolute("." if is_module else target)
    return full if os.path.isdir(full) else os.path.dirname(os.path.realpath(full))


def _script(path: str, names: dict[str, Any], compiler: Compiler) -> tuple[CodeType, str | None]:
    """Return the code of a script, a folder or an archive, and an entry that is to come into ``sys.path``."""
    import pkgutil

    full = _absolute(path)
    finder = None if os.path.isfile(full) and path.endswith(".py") else pkgutil.get_importer(full)
    if finder is not None:
        sys.path.insert(0, full)
        spec = finder.find_spec("__main__")
        return _from_spec(spec, f"can't find '__main__' module in {path!r}", names, compiler), None
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        raise Refused(f"can't open file {full!r}: [Errno {error.errno}] {error.strerror}", 2) from None
    names.update(__spec__=None, __loader__=SourceFileLoader("__main__", full), __file__=full)
    names.update({"__cached__": None} if _HAS_CACHED else {}, __package__=None)
    return compiler(source, full, names), os.path.dirname(os.path.realpath(full))


def _module(name: str, names: dict[str, Any], compiler: Compiler) -> CodeType:
    """Return the code of a module, or of a package's ``__main__``."""
    import importlib.util

    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        why = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        raise Refused(why, 1) from error
    if spec is None:
        raise Refused(f"No module named {name}", 1)
    if spec.submodule_search_locations is None:
        return _from_spec(spec, f"No code object available for {name}", names, compiler)
    inner = f"{name}.__main__"
    missing = f"No module named {inner}; {name!r} is a package and cannot be directly executed"
    return _from_spec(importlib.util.find_spec(inner), missing, names, compiler)


class Accelerator:
    """The acceleration of the user's modules: sites in their code, or wrapped arrays.

    Parameters
    ----------
    also : tuple of str
        The names of packages whose modules get sites, too.
    eagerly : bool
        Whether sites ask for plans at once, not when they are hot.
    is_watched : bool, optional
        Whether somebody wants to see what sites do, so that they are there also if earlier runs of the script
        gained nothing.
    """

    def __init__(self, also: tuple[str, ...], eagerly: bool, is_watched: bool = True) -> None:
        self._is_watched = is_watched
        self._also, self._eagerly = also, eagerly or config.current().jit == "eager"
        self._wraps = config.current().device != "cpu" or communicator() is not None

    def prepare(self, root: str | None, first: str = "") -> None:
        """Accelerate the user's modules from now on; ``root`` is the folder of the script, None for a module,
        whose package is imported before its source is read; ``first`` comes first in ``sys.path``."""
        self._users = UserFiles(root)
        self.hidden = [] if self._wraps else hidden_modules(first or root or "")
        for name in self.hidden:  # the program gets its own
            sys.modules.pop(name, None)
        if self.hidden and self._is_watched:
            print(f"plain Python: {self.hidden[0]} of the program hides Python's module", file=sys.stderr)
        if self.hidden:
            return
        floor.install()
        if self._wraps:
            from dcarray.jit.imports import hook_imports

            users = self._users
            hook_imports(users.has if communicator() is None else users.is_divided)
        elif root is None:
            self._put_sites()

    def _put_sites(self) -> None:
        """Give sites to the modules that are imported from now on, unless nothing is to be compiled."""
        if config.current().jit != "off":
            from dcarray.jit.loops.sites.importer import install_importer

            install_importer(self._also, self._users.has, self._eagerly)

    def compile(self, source: str | bytes, file: str, names: dict[str, Any]) -> CodeType:
        """Compile the source of a script, with sites unless they cannot help, or did not."""
        is_library = self._users.root is None and not hasattr(names["__loader__"], "has_sites")  # -m pytest
        if self._wraps or self.hidden or is_library or config.current().jit == "off":
            return plain(source, file, names)
        verdict = self._verdict(source, file)
        if verdict is not None and not verdict.has_sites:
            code = plain(source, file, names)
        else:
            if self._users.root is not None:
                self._put_sites()
            from dcarray.jit.loops.sites.modules import compile_module

            code = compile_module(source, file, names, not sys.flags.interactive, self._eagerly)
        if verdict is not None:
            atexit.register(verdict.end)  # before the sites let go of what they have counted
        return code

    def _verdict(self, source: str | bytes, file: str) -> Verdict | None:
        """Return the verdict on a script; None if it has sites anyway, and its time says nothing."""
        if self._users.root is None or self._eagerly or "DCARRAY_JIT" in os.environ:
            return None
        from dcarray.jit.loops.sites.verdicts import OF_PROGRAM, Verdict

        verdict = Verdict(source, file)
        if not self._is_watched:
            OF_PROGRAM.append(verdict)
            return verdict
        if not verdict.has_sites:
            note("without --report it has no sites: earlier runs gained nothing", 0, "loop", (file, 1))
        return None


def execute(
    target: str, is_module: bool, begin: Callable[[], None], prepare: Callable[[str | None], None],
    compiler: Compiler = plain,
) -> None:  # fmt: skip
    """Run a script or a module as ``__main__``.

    Parameters
    ----------
    target : str
        A file, or the name of a module, as plain Python's command line takes it.
    is_module : bool
    begin : callable
        Called right before it runs.
    prepare : callable
        Called before the script or module is looked for, with the script's folder (None for a module).
    compiler : callable, optional

    Raises
    ------
    Refused
        If there is no such script or module.
    """
    safe = sys.flags.safe_path
    # What is there stays, and the program's garbage collections need not go through it.  What comes is the
    # program's: its objects are finalised at its end.
    gc.freeze()
    module = ModuleType("__main__")
    names = vars(module)
    names.update(__builtins__=builtins)
    if sys.version_info < (3, 14):
        names.update(__annotations__={})
    if is_module:
        prepare(None)
        if not safe:
            with suppress(OSError):
                sys.path[0] = os.getcwd()
        sys.argv[0] = "-m"
        code = _module(target, names, compiler)
        sys.argv[0] = names["__file__"]
    else:
        if not safe:
            del sys.path[0]
        prepare(os.path.dirname(os.path.abspath(target)))
        code, folder = _script(target, names, compiler)
        if not safe and folder is not None:
            sys.path.insert(0, folder)
    sys.modules["__main__"] = module
    if communicator() is not None:
        from dcarray.distributed import jobs

        jobs.begin()
    is_script = names["__spec__"] is None
    begin()
    try:
        run_as_first(code, names)
    finally:
        if is_script:  # as plain python does, before it shows an error
            flush()
    if "dcarray.api.array" in sys.modules:
        from dcarray.api.array import evaluate

        evaluate()  # run what is pending: its errors and warnings are the program's
    if communicator() is not None:
        _sent.append(jobs.table())


# ---- how it ends -------------------------------------------------------------------------------------
def run_as_python_does(
    name: str, target: str, is_module: bool, begin: Callable[[], None],
    prepare: Callable[[str | None], None], compiler: Compiler = plain, end: Callable[[], int] = lambda: 0,
) -> int:  # fmt: skip
    """Run a script or a module, and end as plain python does.

    Parameters
    ----------
    name : str
        The name of the command, for its messages.
    target, is_module, begin, prepare, compiler
        As of `execute`.
    end : callable, optional
        Called when it has run, however it ends; returns the exit status of a program that ends by itself.

    Returns
    -------
    int
        The exit status, unless the program ends by an exception.
    """
    try:
        execute(target, is_module, begin, prepare, compiler)
    except Refused as refused:
        message, status = refused.args
        print(f"{name}: {message}", file=sys.stderr)
        return int(status)
    except SystemExit:
        end()
        raise
    except BaseException as error:
        end()
        fail(error)
    return end()


def _at_end(show_report: bool, explain: str | None) -> None:
    """Show the report and the explanation at exit, however the program ends."""
    if explain is not None:
        from .explain import Collection

        collection = Collection()
    if not show_report and explain is None:
        return

    def tell() -> None:
        if communicator() is not None:
            from dcarray.distributed import jobs

            if not jobs.leads():
                return
        if explain is not None:
            collection.explanation().save(explain)
            print(f"regions saved: {explain}", file=sys.stderr)
        if show_report:
            from .hot_lines import table

            print(report(), table(), *filter(None, _sent), sep="\n", file=sys.stderr)

    atexit.register(tell)


def main(arguments: list[str]) -> int:
    """Run what the command line of ``python -m dcarray run`` names.

    Parameters
    ----------
    arguments : list of str
        What follows ``run`` there: options, the script or ``-m`` and the module, and its own arguments.

    Returns
    -------
    int
        The exit status: 0 of a program that has run to its end, 2 if the arguments are wrong.  If an
        exception ends the program, this function does not return.
    """
    remaining = list(arguments)
    show_report, explain, is_module = False, None, False
    also: list[str] = []
    while remaining and remaining[0].startswith("-") and not is_module:
        option = remaining.pop(0)
        name, given, value = option.partition("=")
        if option in ("-h", "--help"):
            return quietly(_help)
        if option == "--report":
            show_report = True
        elif name == "--explain" and (given or remaining):
            explain = os.path.abspath(value if given else remaining.pop(0))
        elif name == "--also" and (given or remaining):
            also.append(value if given else remaining.pop(0))
        elif option == "-m" and remaining:
            is_module = True
        elif option == "--":
            break
        else:
            wants = option in ("-m", "--explain", "--also")
            return _usage(f"{option} wants a value" if wants else f"unknown option {option}")
    if not remaining:
        return _usage("no script and no module given")
    if explain is not None:
        if not explain.endswith((".html", ".svg", ".txt")):
            return _usage(f"--explain {explain}: must end in .html, .svg or .txt")
        if not os.path.isdir(os.path.dirname(explain)):
            return _usage(f"--explain {explain}: there is no such folder")
    sys.argv = remaining
    show_report = show_report or remaining[-1] == "--report"
    accelerator = Accelerator(tuple(also), eagerly=explain is not None, is_watched=show_report)

    def begin() -> None:
        if not accelerator.hidden:
            _at_end(show_report, explain)

    def prepare(root: str | None) -> None:
        if show_report:
            report(reset=True)  # from here on all is the program's
        accelerator.prepare(root, _first_entry(remaining[0], is_module))

    return run_as_python_does(_NAME, remaining[0], is_module, begin, prepare, accelerator.compile)


def _help() -> int:
    print(_HELP, end="")
    return 0


def _usage(problem: str) -> int:
    print(f"{_USAGE}\n{_NAME}: {problem}", file=sys.stderr)
    return 2
