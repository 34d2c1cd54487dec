"""Syntax trees that several threads make at the same time."""

import gc
import time
from collections.abc import Callable
from typing import Any

from callers import together

from dcarray.lowering.runtime.parsing import parse

TEXT = "x = [" + "(1, 2, {3: 4}), " * 200 + "]"


class Rests:
    """What lets other threads run when it is collected as garbage."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(1e-5)


def failures(parse: Callable[[str], Any]) -> int:
    """Parse in four threads, while garbage is collected often; return how often that fails."""
    failed: list[Exception] = []

    def work(_: int) -> None:
        for _ in range(20):
            Rests()
            try:
                parse(TEXT)
            except SystemError as error:
                failed.append(error)

    before = gc.get_threshold()
    gc.set_threshold(50)
    try:
        together(4, work)
    finally:
        gc.set_threshold(*before)
    return len(failed)


def test_no_tree_is_made_in_the_middle_of_another_one() -> None:
    assert failures(parse) == 0
