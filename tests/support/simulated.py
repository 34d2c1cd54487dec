"""Tests whose bodies run on several simulated ranks."""

import functools
from collections.abc import Callable
from typing import Any

from dcarray import comm

Test = Callable[..., None]


def on_ranks(size: int) -> Callable[[Test], Test]:
    """Run all of a test on each of so many ranks."""

    def changed(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            comm.run(size, lambda: test(*args, **kwargs))

        return run

    return changed
