"""What calls give, to be compared: results and arguments to the bit, errors with their lines, warnings."""

import copy
import traceback
import warnings
from typing import Any, NamedTuple

import numpy as np


class Outcome(NamedTuple):
    """What `outcome` returns."""

    result: Any
    """The result, or the kind of error, its text and the line of the program."""
    given: Any
    """The arguments after the call."""
    said: list[tuple[str, int]]
    """Warnings, with their lines."""

    @property
    def texts(self) -> set[str]:
        """The warnings without their lines."""
        return {text for text, _ in self.said}


def exactly(value: Any) -> Any:
    """A value as something to compare, by types and bits; any not-a-number equals any other."""
    if isinstance(value, list | tuple):
        return type(value), [exactly(one) for one in value]
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        made = np.array(value)
        if made.dtype.kind in "fc":
            made[np.isnan(made)] = np.nan
        return type(value), made.dtype, made.shape, made.tobytes()
    return type(value), repr(value)


def outcome(f: Any, args: Any, action: Any = "always", **state: Any) -> Outcome:
    """What a call gives of copies of the arguments, in a state of `np.errstate`."""
    given = copy.deepcopy(args)
    with np.errstate(**state), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        try:
            result = exactly(f(*given))
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            result = type(error), str(error), [one.lineno for one in frames if "written" in one.filename][-1:]
    return Outcome(result, exactly(given), sorted((str(w.message), w.lineno) for w in caught))
