"""The package's own exceptions; other exceptions that it raises are NumPy's or Python's."""

from __future__ import annotations

__all__ = ["BAD_CALL", "ProgramError", "ScheduleError", "StrictError", "Untraceable"]

# Raised for arguments that code of ours does not expect: NumPy, which may, then runs the call.
BAD_CALL = AttributeError, IndexError, OverflowError, TypeError, ValueError


class StrictError(RuntimeError):
    """Raised with the option ``strict`` for a call that has no compiled form, instead of running it in NumPy.

    Parameters
    ----------
    function : str
        The function that was called.
    where : tuple of str and int
        The user's file and line.
    """

    def __init__(self, function: str, where: tuple[str, int]) -> None:
        place = f"{where[0]}:{where[1]}"
        super().__init__(f"{function} has no compiled form, and the option strict is on ({place})")


class ProgramError(Exception):
    """Raised for a program (``dc.program``) that cannot be compiled, with the place in the source.

    Parameters
    ----------
    reason : str
    file : str
    line : int
    """

    def __init__(self, reason: str, file: str, line: int) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.reason, self.file, self.line = reason, file, line

    def __reduce__(self) -> tuple[type[ProgramError], tuple[str, str, int]]:
        return type(self), (self.reason, self.file, self.line)


class Untraceable(Exception):
    """Raised for a loop that cannot be compiled, with the reason and the line of the file."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


class ScheduleError(ValueError):
    """Raised for a change of a region by ``dc.schedule`` that is not legal, or not proved to be, with the
    reason."""
