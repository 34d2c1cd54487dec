"""Runs PolyBench/Python as it is and accelerated: ``python -m conformance.polybench --suite PATH``.

The suite is a checkout of UDC-GAC/polybench-python.  Each kernel has a class with loops over lists and one
with NumPy statements; the method ``kernel`` of each runs in a separate process, as it is and with
`dcarray.accelerate` on its module, in turn and on copies of the same arguments.  The arguments are compared
after the call.
"""

from __future__ import annotations

import copy
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.in_turns import copied, take_turns
from conformance.suites import Program, Suite, loaded

__all__ = ["main", "programs"]

FOLDER = "benchmarks"
_SIZES = {"LIST": "SMALL", "NUMPY": "MEDIUM"}
"""Of the suite's: Python takes milliseconds to seconds."""


def programs(suite: Path) -> list[Program]:
    """Return the kernels of the suite, with lists and with NumPy, as programs."""
    found = []
    for file in sorted((suite / FOLDER).rglob("*.py"), key=lambda one: one.stem.strip("_")):
        if file.stem == file.parent.name:
            name = file.stem.strip("_")
            found += [Program(f"{name}, lists", [str(suite), str(file), "LIST"])]
            found += [Program(f"{name}, NumPy", [str(suite), str(file), "NUMPY"])]
    return found


# ---- in a process of its own ------------------------------------------------------------------------
def _use(suite: Path) -> Any:
    """Make the suite's package importable, with stubs for the libraries of hardware counters.

    Returns its module of options.
    """
    for name in [one for one in sys.modules if one.partition(".")[0] == FOLDER]:
        del sys.modules[name]
    package, events, assembler = ModuleType(FOLDER), ModuleType("pypapi"), ModuleType("inlineasm")
    package.__path__ = [str(suite / FOLDER)]
    vars(events).update(events=None, papi_high=None)
    vars(assembler).update(assemble=lambda *given: None)
    sys.modules |= {FOLDER: package, "pypapi": events, "inlineasm": assembler}
    import benchmarks.polybench_classes as options  # type: ignore[import-not-found]

    return options


class _Kernel:
    """A kernel in a separately loaded module, with the arguments that its benchmark creates."""

    def __init__(self, words: list[str], way: str) -> None:
        suite, file, method = words
        options = _use(Path(suite))
        module = loaded(Path(file))
        specs = options.PolyBenchSpecFile(str(Path(suite) / "polybench.spec")).specs
        spec = next(one for one in specs if one.Name == Path(file).stem.strip("_").replace("_", "-"))
        chosen = options.PolyBenchOptions()
        chosen.POLYBENCH_ARRAY_IMPLEMENTATION = options.ArrayImplementation[method]
        chosen.POLYBENCH_DATASET_SIZE = options.DataSetSize[_SIZES[method]]
        kind = next(
            one
            for one in vars(module).values()
            if isinstance(one, type) and one.__module__ == module.__name__ and "_Strategy" not in one.__name__
        )
        self._benchmark = kind(chosen, spec)
        self._benchmark.time_kernel = self._keep
        self._arguments: tuple[Any, ...] = ()
        self._given: tuple[Any, ...] = ()
        self._benchmark.run_benchmark()
        if way == "dcarray":
            import dcarray

            dcarray.accelerate(module)

    def _keep(self, *arguments: Any) -> None:
        self._arguments = arguments

    def call(self) -> float:
        """Call the kernel, and return the seconds."""
        self._given = copy.deepcopy(self._arguments)
        begun = time.perf_counter()
        self._benchmark.kernel(*self._given)
        return time.perf_counter() - begun

    def result(self) -> Any:
        """Return the arguments of the last call, as the kernel has changed them."""
        return copied(self._given)


def figures(words: list[str], seconds: float, peer: bool) -> dict[str, Any]:
    """Return the times of a kernel, run in both ways in turn; see `Suite.figures`."""
    return take_turns(_Kernel(words, "plain"), _Kernel(words, "dcarray"), None, seconds)


SUITE = Suite(
    command="conformance.polybench",
    title="PolyBench/Python",
    folder=FOLDER,
    programs=programs,
    figures=figures,
    about="""\
The suite is UDC-GAC/polybench-python: its kernels on lists in its size SMALL, and in NumPy's statements in
its size MEDIUM.  The arguments are compared as the kernels leave them.""",
)
main = SUITE.main


if __name__ == "__main__":
    sys.exit(main())
