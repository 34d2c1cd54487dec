"""NumPy's random numbers, bit for bit, as wrapped arrays.

The streams are NumPy's own: generators, legacy functions and bit generators run in NumPy, arrays among
their arguments (``out=``, ``p=``, what is shuffled) are handed over as memory, and arrays among their
results are wrapped.  The legacy functions share NumPy's global state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from . import fallback

__all__ = ["Generator", "RandomState", "default_rng", "function"]


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fallback.direct(function, args, kwargs)

    return call


def _wrapping(base: type) -> Callable[[type], type]:
    """Class decorator: every public method of ``base`` takes and gives wrapped arrays."""

    def decorate(cls: type) -> type:
        for name in dir(base):
            function = getattr(base, name)
            if not name.startswith("_") and callable(function) and name not in vars(cls):
                setattr(cls, name, _method(function))
        return cls

    return decorate


@_wrapping(np.random.Generator)
class Generator(np.random.Generator):
    """`numpy.random.Generator` whose arrays are wrapped."""

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Independent child generators."""
        return [type(self)(bits) for bits in self.bit_generator.spawn(n_children)]

    def __reduce__(self) -> Any:
        return type(self), (self.bit_generator,)


@_wrapping(np.random.RandomState)
class RandomState(np.random.RandomState):
    """`numpy.random.RandomState` whose arrays are wrapped."""

    def __reduce__(self) -> Any:
        return _random_state, (self.get_state(legacy=False),)


def _random_state(state: Any) -> RandomState:
    found = RandomState()
    found.set_state(state)
    return found


def default_rng(seed: Any = None) -> Generator:
    """A new `Generator` with NumPy's default bit generator.

    Parameters
    ----------
    seed : None, int, array_like of ints, SeedSequence, BitGenerator, Generator or RandomState
        As in `numpy.random.default_rng`; a `Generator` comes back as it is.

    Returns
    -------
    Generator
        Its stream is that of ``numpy.random.default_rng(seed)``.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(fallback.direct(np.random.default_rng, (seed,), {}).bit_generator)


def function(name: str) -> Any:
    """The counterpart of a name of `numpy.random` that has no class here."""
    value = getattr(np.random, name)
    if callable(value) and not isinstance(value, (type, ModuleType)) and not name.startswith("_"):
        return _method(value)
    return value
