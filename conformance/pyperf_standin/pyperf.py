"""A stand-in for pyperf: its runner calls each benchmark a few times in this process, and prints the results.

`conformance.pyperformance` puts it before the package of that name, so that a benchmark's output says what it
has computed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import subprocess
import sys
from time import perf_counter
from typing import Any

__all__ = ["Runner", "perf_counter", "python_implementation"]

VERSION = (2, 11, 0)
_CALLS = 3


def python_implementation() -> str:
    """Return the name of the implementation of Python."""
    return sys.implementation.name


def _tell(name: str, result: Any) -> None:
    text = re.sub(r"\b0x[0-9a-f]+\b", "0x", repr(result))
    print(name, type(result).__name__, text[:60], hashlib.sha256(text.encode()).hexdigest()[:16], flush=True)


class Runner:
    """The part of pyperf's runner that benchmarks use."""

    def __init__(self, **options: Any) -> None:
        self.metadata: dict[str, Any] = {}
        self.argparser = argparse.ArgumentParser()
        self.args: Any = None
        self._program_args = options.get("program_args")

    def parse_args(self, args: list[str] | None = None) -> argparse.Namespace:
        """Parse the command line once."""
        if self.args is None:
            self.args = self.argparser.parse_args(args)
            vars(self.args).update(worker=False, inherit_environ=None, quiet=True)
        return self.args  # type: ignore[no-any-return]

    def bench_func(self, name: str, func: Any, *args: Any, **options: Any) -> None:
        """Call a function, and print its results."""
        self.parse_args()
        for _ in range(_CALLS):
            _tell(name, func(*args))

    def bench_time_func(self, name: str, func: Any, *args: Any, **options: Any) -> None:
        """Call a function that runs a loop and returns its time."""
        self.parse_args()
        for _ in range(_CALLS):
            _tell(name, type(func(1, *args)))

    def bench_async_func(self, name: str, func: Any, *args: Any, **options: Any) -> None:
        """Await the results of an asynchronous function, and print them."""
        self.parse_args()
        for _ in range(_CALLS):
            with asyncio.Runner(loop_factory=options.get("loop_factory")) as runner:
                _tell(name, runner.run(func(*args)))

    def bench_command(self, name: str, command: list[str]) -> None:
        """Run a command, and print its output."""
        self.parse_args()
        done = subprocess.run(command, capture_output=True, check=False)
        _tell(name, (done.returncode, done.stdout))
