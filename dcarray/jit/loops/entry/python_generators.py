"""Generators of Python's module `random`: compiled code draws for them from bit generators of NumPy.

Both are the Mersenne Twister.  A run copies the state from Python's generator to that of NumPy's, and back if
it succeeds; so there is nothing to undo if it fails.
"""

from __future__ import annotations

import random
import threading
from functools import cache
from operator import attrgetter
from random import Random
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .memory_at import memory_at

__all__ = ["INSTANCE", "IN_PYTHON", "Twin", "copied_back", "copied_here", "own_method", "twin"]

INSTANCE: Any = getattr(random, "_inst", None)
"""The generator of the functions of the module `random`."""
IN_PYTHON = (
    "_randbelow", "betavariate", "choice", "expovariate", "gammavariate", "gauss", "lognormvariate",
    "normalvariate", "paretovariate", "randint", "randrange", "triangular", "uniform", "vonmisesvariate",
    "weibullvariate",
)  # fmt: skip
"""The methods that compiled code knows and that are written in Python."""

_WORDS = 624  # of the state of a Mersenne Twister; besides them it has a position in them
_methods = attrgetter("random", "getrandbits", *[f"{name}.__code__" for name in IN_PYTHON])


class Twin:
    """A bit generator of NumPy that compiled code draws from in place of a generator of Python's.

    Attributes
    ----------
    address, state, has_gauss, gauss : ndarray
        As in `generators.Parts`.
    own : ndarray
        The memory of the Python generator's state: the position, and the words.
    """

    __slots__ = ("_bits", "address", "gauss", "has_gauss", "own", "state")

    def __init__(self, value: Random, place: int) -> None:
        self._bits = np.random.MT19937(0)
        interface = self._bits.ctypes
        self.address = np.array(interface.bit_generator.value, np.uint64)
        self.state = memory_at(interface.state_address, np.uint32, _WORDS + 1)
        self.has_gauss, self.gauss = np.zeros(1, np.int32), np.zeros(1)
        self.own = memory_at(id(value) + place, np.uint32, _WORDS + 1)

    def words(self) -> list[int]:
        """Return the next words of 32 bits, of as many as two states have."""
        words: list[int] = self._bits.random_raw(2 * _WORDS).tolist()
        return words


_twins: WeakKeyDictionary[Random, Twin] = WeakKeyDictionary()


def twin(value: Random) -> Twin | None:
    """Return the bit generator that shares the state of one of Python's generators.  It lives as long as the
    generator.  None if the state is not at the usual place, or if the methods are not Python's own."""
    place = _place_of_state()
    if not place or type(value) is not Random or list(vars(value)) != ["gauss_next"] or not _are_own():
        return None
    bits = _twins.get(value)
    if bits is None:
        bits = _twins[value] = Twin(value, place)
    return bits


def copied_here(value: Random) -> bool:
    """Copy the state of a generator to its twin; return False if another thread could draw the same numbers
    meanwhile."""
    bits = twin(value)
    kept = vars(value).get("gauss_next")
    if bits is None or threading.active_count() > 1 or not (kept is None or type(kept) is float):
        return False
    bits.state[:_WORDS] = bits.own[1:]
    bits.state[_WORDS] = bits.own[0]
    bits.has_gauss[0] = kept is not None
    bits.gauss[0] = 0.0 if kept is None else kept
    return True


def copied_back(value: Random) -> None:
    """Copy the state of a generator's twin back to the generator."""
    bits = _twins[value]
    bits.own[1:] = bits.state[:_WORDS]
    bits.own[0] = bits.state[_WORDS]
    vars(value)["gauss_next"] = float(bits.gauss[0]) if bits.has_gauss[0] else None


# ---- what is as expected --------------------------------------------------------------------------------
def own_method(name: str) -> FunctionType | None:
    """Return a method of `random.Random` written in Python; None if a method is not Python's own."""
    return getattr(Random, name) if _are_own() else None


def _are_own() -> bool:
    try:
        return bool(_methods(Random) == _own_methods())
    except AttributeError:  # what is there instead has no code
        return False


@cache
def _own_methods() -> tuple[Any, ...] | None:
    """Return the methods of the class, the code of those in Python, if they are Python's own; else None."""
    methods: tuple[Any, ...] = _methods(Random)
    if any(getattr(one, "__objclass__", None) is not Random.__base__ for one in methods[:2]):
        return None
    for code in methods[2:]:
        whole = type(code) is CodeType and code.co_filename == getattr(random, "__file__", None)
        if not whole or not code.co_qualname.startswith("Random."):
            return None
    return methods


@cache
def _place_of_state() -> int:
    """Return the offset of the state in a generator's object; 0 if it is not found, or NumPy's bit generator
    draws other numbers from it."""
    value = Random(11)
    words = memory_at(id(value), np.uint32, Random.__basicsize__ // 4).tolist()
    *state, position = value.getstate()[1]
    for place in range(4, len(words) - _WORDS):
        if words[place] == position and words[place + 1 : place + 1 + _WORDS] == state:
            return 4 * place if _agrees(value, 4 * place) else 0
    return 0


def _agrees(value: Random, place: int) -> bool:
    """Whether a generator's state at a place, and the words drawn from it, are those of its twin."""
    bits = Twin(value, place)
    for drawn in (1, 7, _WORDS):
        for _ in range(drawn):
            value.random()
        bits.state[:_WORDS], bits.state[_WORDS] = bits.own[1:], bits.own[0]
        words = bits.words()
        if words != [value.getrandbits(32) for _ in words]:
            return False
        if (*bits.state.tolist(),) != value.getstate()[1] or bits.state[_WORDS] != bits.own[0]:
            return False
    return True
