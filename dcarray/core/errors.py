"""The package's own exceptions; whatever NumPy would raise is raised as NumPy raises it."""

from __future__ import annotations

__all__ = ["StrictError", "Untraceable"]


class StrictError(RuntimeError):
    """A call has no lowering of its own and ``strict`` forbids to run it through NumPy.

    Parameters
    ----------
    function : str
        The function that was called.
    where : tuple of str and int
        The user's file and line.
    """

    def __init__(self, function: str, where: tuple[str, int]) -> None:
        super().__init__(f"{function} has no lowering and strict is on ({where[0]}:{where[1]})")


class Untraceable(Exception):
    """Raised for a loop that cannot be compiled, with the reason and the line of the file."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line
