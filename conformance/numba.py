"""Runs Numba's own benchmarks, as they are and accelerated: ``python -m conformance.numba --suite PATH``.

The suite is a checkout of numba/numba-benchmark: classes with methods ``time_...``, which call functions that
Numba compiles.  Each method runs in a separate process in several ways in turn: with a stand-in for numba
whose decorators return functions unchanged, with these functions accelerated by `dcarray.accelerate`, and
with Numba if it is installed.  The functions' results and the arrays that they write to are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from conformance.in_turns import copied, seed, take_turns
from conformance.numba_standin import Ufunc, standing_in
from conformance.suites import Program, Suite, loaded

__all__ = ["main", "programs"]

FOLDER = "benchmarks"
_LEFT_OUT = {
    "bench_cuda": "it is for CUDA",
    "bench_compiling": "it has no work: it measures Numba's compiler",
    "bench_dispatch": "it has no work: it measures Numba's calls of functions that do nothing",
    "bench_misc InitializationTime": "it has no work: it starts processes that import Numba",
}
_SIZES = {"N": 10**6, "n_bodies": 512}
"""The most of attributes that are sizes: larger ones take Python minutes."""


def programs(suite: Path) -> list[Program]:
    """Return the methods of the suite, as programs."""
    found = []
    for file in sorted((suite / FOLDER).glob("bench_*.py")):
        if file.stem in _LEFT_OUT:
            found.append(Program(file.stem, [], _LEFT_OUT[file.stem]))
            continue
        words = [sys.executable, "-m", "conformance.numba", "--list", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if done.returncode:
            found.append(Program(file.stem, [], (done.stderr.strip().splitlines() or ["?"])[-1]))
            continue
        for kind, methods in json.loads(done.stdout.splitlines()[-1]).items():
            if (name := f"{file.stem} {kind}") in _LEFT_OUT:
                found.append(Program(name, [], _LEFT_OUT[name]))
                continue
            stem = file.stem.removeprefix("bench_")
            found += [Program(f"{stem} {m.removeprefix('time_')}", [str(file), kind, m]) for m in methods]
    return found


def methods(file: Path) -> dict[str, list[str]]:
    """Return the names of the methods of each class of a file."""
    with standing_in([]):
        module = loaded(file)
    found: dict[str, list[str]] = {}
    for name, kind in vars(module).items():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            timed = [one for one in dir(kind) if one.startswith("time_")]
            found |= {name: timed} if timed else {}
    return found


# ---- in a process of its own ------------------------------------------------------------------------
class _Method:
    """A method of a benchmark, in a separately loaded module.

    Parameters
    ----------
    words : list of str
        The file, the class and the method.
    way : str
        ``"plain"``, ``"dcarray"`` or ``"numba"``.
    """

    def __init__(self, words: list[str], way: str) -> None:
        file, kind, method = words
        seed()
        decorated: list[Any] = []
        with nullcontext() if way == "numba" else standing_in(decorated):
            module = loaded(Path(file))
            for one in vars(module).values():
                if isinstance(one, type) and one.__module__ == module.__name__:
                    for name, most in _SIZES.items():
                        if isinstance(getattr(one, name, None), int):
                            setattr(one, name, min(getattr(one, name), most))
            if hasattr(module, "setup"):
                module.setup()
            owner = getattr(module, kind)()
            if hasattr(owner, "setup"):
                with suppress(IndexError):  # of a first call for Numba to compile, which does not see it
                    owner.setup()
        self._call: Callable[[], Any] = getattr(owner, method)
        self._decorated = decorated
        if way == "dcarray":
            _accelerate(module, decorated)

    def call(self) -> float:
        """Call the method, and return the seconds."""
        begun = time.perf_counter()
        self._call()
        return time.perf_counter() - begun

    def result(self) -> Any:
        """Return the results of the functions that the method calls, and their arguments afterwards."""
        files = {_function(one).__code__.co_filename for one in self._decorated if not isinstance(one, type)}
        names = {one.__name__ for one in self._decorated if not isinstance(one, type)}
        found: list[Any] = []
        arguments: list[Any] = []
        outermost: list[FrameType] = []

        def look(frame: FrameType, event: str, value: Any) -> None:
            code = frame.f_code
            if event == "call" and not outermost and code.co_name in names and code.co_filename in files:
                outermost.append(frame)
                arguments[:] = [frame.f_locals[name] for name in code.co_varnames[: code.co_argcount]]
            elif event == "return" and outermost and frame is outermost[0]:
                found.append(copied((code.co_name, value, arguments)))
                outermost.clear()

        sys.setprofile(look)
        try:
            self._call()
        finally:
            sys.setprofile(None)
        return found


def _function(decorated: Any) -> Any:
    return decorated.function if isinstance(decorated, Ufunc) else decorated


def _accelerate(module: Any, decorated: list[Any]) -> None:
    """Accelerate only the functions that Numba would compile."""
    import dcarray

    chosen = ModuleType(module.__name__)
    vars(chosen).update({f"{one.__name__}_{i}": _function(one) for i, one in enumerate(decorated)})
    dcarray.accelerate(chosen)


def figures(words: list[str], seconds: float, numba: bool) -> dict[str, Any]:
    """Return the times of a method, run in several ways in turn; see `Suite.figures`."""
    peer = (lambda: _Method(words, "numba")) if numba else None
    return take_turns(_Method(words, "plain"), _Method(words, "dcarray"), peer, seconds)


SUITE = Suite(
    command="conformance.numba",
    title="Numba's benchmarks",
    folder=FOLDER,
    programs=programs,
    figures=figures,
    peer="numba",
    peer_name="Numba",
    about="""\
The suite is numba/numba-benchmark.  Its functions run without decorators, with `dcarray.accelerate` on them,
and compiled by Numba, in turn in one process; results and the arrays written to are compared.  Sizes that
take Python minutes are smaller.""",
)


def main(arguments: list[str] | None = None, told: Callable[[str], None] | None = None) -> int:
    """Run the command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--list"]:
        print(json.dumps(methods(Path(given[1]))))
        return 0
    return SUITE.main(given, *([told] if told is not None else []))


if __name__ == "__main__":
    sys.exit(main())
