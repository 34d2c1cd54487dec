"""Random generators as values that loops draw from: where in memory their state is.

Compiled code calls NumPy's own functions, which change a generator's state where it is.  So the state is an
array that a loop reads and writes, with undo copies as any other: memory of the bit generator's object, and
for a `numpy.random.RandomState` also the second number of a pair from a normal distribution, which it keeps.
For Python's own generators, NumPy's bit generators draw (`python_generators`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dcarray.ir.draws import BINOMIAL

from .memory_at import memory_at

if TYPE_CHECKING:
    from .python_generators import Twin

__all__ = [
    "GLOBAL", "PYTHON", "WORDS", "Fetcher", "Generator", "GlobalGenerator", "acquired", "described",
    "drawing", "generator_of", "global_generator", "guard", "is_copied", "is_input", "is_state", "part_text",
    "python_instance", "released",
]  # fmt: skip

WORDS = {"MT19937": 625, "PCG64": 14, "PCG64DXSM": 14, "SFC64": 10}
"""The size of the state of bit generators that compiled code knows, in words of 32 bits."""
GLOBAL = ""
"""The name of the generator of NumPy's functions, like `numpy.random.rand`."""
PYTHON = "random/_inst"
"""The name of the generator of the functions of Python's module `random`."""

_MODULES = {
    "numpy.random._generator": "Generator", "numpy.random.mtrand": "RandomState", "random": "Random"
}  # fmt: skip
_PCG64 = 24  # bytes from the beginning of its state to the other part, to which it points


class Generator(NamedTuple):
    """The description of a generator: the names of its bit generator ("Random": Python's) and its class."""

    bits: str
    owner: str


class GlobalGenerator(NamedTuple):
    """The description of a generator that is bound to a global name, like ``__main__/rng``."""

    name: str
    kind: Generator


class Parts(NamedTuple):
    """The memory of a generator.

    Attributes
    ----------
    address : ndarray
        The address of the generator's C interface, in an array without axes.
    state : ndarray
    has_gauss, gauss : ndarray
        Whether a `RandomState` keeps a number from a normal distribution, and that number; of one element,
        and of none where there is nothing to keep.
    binomial : ndarray
        The address of memory for what a binomial distribution computes once, in an array without axes.
    memory : ndarray
        The memory at the address ``binomial``.
    """

    address: Any
    state: Any
    has_gauss: Any
    gauss: Any
    binomial: Any
    memory: Any


# ---- of values ----------------------------------------------------------------------------------------
def guard(value: Any) -> tuple[str, Generator] | None:
    """Return the guard of a generator; None if the value is none, or its bit generator is not supported."""
    parts = _parts(value)
    return None if parts is None else ("generator", parts[0])


def global_generator(value: Any, name: str, names: dict[str, Any]) -> GlobalGenerator | None:
    """Return the description of a generator that a module's dictionary of names has under one; None if it is
    no generator, or there is no such module."""
    known, module = guard(value), names.get("__name__")
    if known is None or getattr(sys.modules.get(str(module)), "__dict__", None) is not names:
        return None
    return GlobalGenerator(f"{module}/{name}", known[1])


def described(value: tuple[str, Generator]) -> Generator:
    """Return the description of the generator in a guard."""
    return value[1]


def _is_pythons(generator: Any) -> bool:
    return type(generator).__module__ == "random"


def _parts(value: Any) -> tuple[Generator, Parts | Twin] | None:
    """Return the description and the memory of a generator; None if it is none that compiled code knows."""
    kind = type(value)
    if _MODULES.get(kind.__module__) != kind.__name__:
        return None
    if _is_pythons(value):
        from .python_generators import twin

        memory = twin(value)
        return None if memory is None else (Generator("MT19937", "Random"), memory)
    return _parts_in_numpy(value, value._bit_generator)  # which may be replaced


@lru_cache(maxsize=64)
def _parts_in_numpy(value: Any, bits: Any) -> tuple[Generator, Parts] | None:
    """Return the description of a generator, and its memory, which is held and so stays in its place."""
    kind = type(bits).__name__
    if kind not in WORDS or not type(bits).__module__.startswith("numpy.random."):
        return None
    interface = bits.ctypes
    start, owner = interface.state_address, type(value).__name__
    if not kind.startswith("PCG64") or memory_at(start, np.uint64, 1)[0] == start + _PCG64:
        state = memory_at(start, np.uint32, WORDS[kind])
        kept = _kept(value, start) if owner == "RandomState" else (np.empty(0, np.int32), np.empty(0))
        if kept is not None:
            address = np.array(interface.bit_generator.value, np.uint64)
            memory = np.zeros(BINOMIAL, np.uint64)
            binomial = np.array(memory.ctypes.data, np.uint64)
            return Generator(kind, owner), Parts(address, state, kept[0], kept[1], binomial, memory)
    return None


def _kept(value: Any, state: int) -> tuple[Any, Any] | None:
    """Return what a `RandomState` keeps of a pair of numbers, C's ``int`` and ``double`` in its object; None
    if it is not where it is in others."""
    place, interface = _place_of_kept()
    if not place or memory_at(id(value) + interface, np.uint64, 1)[0] != state:
        return None
    return memory_at(id(value) + place, np.int32, 1), memory_at(id(value) + place + 8, np.float64, 1)


@cache
def _place_of_kept() -> tuple[int, int]:
    """Return the place in a `RandomState` of the kept one of a pair of numbers, and that of its interface;
    zeros if they are not found."""
    value = np.random.RandomState(11)
    state = value._bit_generator.ctypes.state_address
    words = memory_at(id(value), np.uint64, type(value).__basicsize__ // 8).tolist()
    for place, word in enumerate(words[:-2]):  # there is a pointer to the interface before it
        ahead = word - id(value)
        if 0 < ahead < 8 * place and ahead % 8 == 0 and words[ahead // 8] == state:
            has_gauss = memory_at(id(value) + 8 * (place + 1), np.int32, 1)
            gauss = memory_at(id(value) + 8 * (place + 2), np.float64, 1)
            for _ in range(4):
                value.standard_normal()
                known = value.get_state(legacy=False)
                if (known["has_gauss"], known["gauss"]) != (has_gauss[0], gauss[0]):
                    return 0, 0
            return 8 * (place + 1), ahead
    return 0, 0


# ---- as inputs of plans -------------------------------------------------------------------------------
def part_text(name: str, part: str, generator: Generator) -> str:
    """Return the text that stands for a part of a generator among the inputs of a plan."""
    return f"{name}:{part}:{generator.bits}:{generator.owner}"


def is_input(text: str) -> bool:
    """Whether the text of an input is that of a part of a generator."""
    return text.count(":") == 3


def generator_of(text: str, place: dict[str, int]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that gives the generator of an input, given the values of names."""
    name = text.partition(":")[0]
    if name == GLOBAL:
        return lambda values: _global()
    if name == PYTHON:
        return lambda values: python_instance()
    module, _, own = name.rpartition("/")
    if module:
        return lambda values: vars(sys.modules[module]).get(own)
    at = place[name]
    return lambda values: values[at]


def _global() -> Any:
    """Return the `RandomState` from which the functions of ``numpy.random`` draw."""
    module: Any = sys.modules["numpy.random.mtrand"]
    return module._rand


def python_instance() -> Any:
    """Return the generator behind the functions of Python's module `random`; None if that is not imported."""
    if "random" not in sys.modules:
        return None
    from .python_generators import INSTANCE

    return INSTANCE


class Fetcher:
    """A callable that takes the values of names and returns the memory of a generator's part; it returns None
    if the generator now has another bit generator.

    Parameters
    ----------
    text : str
        As `part_text` has it.
    place : dict of str to int
        The positions of names among the values.
    """

    def __init__(self, text: str, place: dict[str, int]) -> None:
        _, self.part, bits, owner = text.split(":")
        self._find, self._kind = generator_of(text, place), Generator(bits, owner)

    def __call__(self, values: Sequence[Any]) -> Any:
        parts = _parts(self._find(values))
        return None if parts is None or parts[0] != self._kind else getattr(parts[1], self.part)


def is_copied(text: str) -> bool:
    """Whether an input is a part of a generator of Python's, which keeps its state where a run fails."""
    return is_input(text) and text.endswith(":Random")


def is_state(fetch: Any) -> bool:
    """Whether an input is the state of a generator, which two generators may share."""
    return type(fetch) is Fetcher and fetch.part == "state"


def acquired(generators: Sequence[Any]) -> list[Any] | None:
    """Return the locks of NumPy's generators, which this thread now holds; None, holding none, if another
    thread holds one, or may draw from a generator of Python's."""
    locks: list[Any] = []
    for generator in generators:
        if _is_pythons(generator):
            from .python_generators import copied_here

            usable = copied_here(generator)
        else:
            lock = generator._bit_generator.lock
            usable = lock.acquire(blocking=False)
            locks += [lock] * usable
        if not usable:
            released(locks)
            return None
    return locks


def released(locks: Sequence[Any]) -> None:
    """Release locks."""
    for lock in locks:
        lock.release()


def drawing(generators: Sequence[Any], run: Callable[[Callable[[], None]], Any]) -> Any:
    """Return the result of a run that draws from generators; None if it fails, or if another thread may draw
    from them now.  The run calls its argument once all else is done."""
    locks = acquired(generators)
    if locks is None:
        return None

    def copy_back() -> None:
        for generator in generators:
            if _is_pythons(generator):
                from .python_generators import copied_back

                copied_back(generator)

    try:
        return run(copy_back)
    finally:
        released(locks)
