"""NumPy's random numbers, bit for bit, as wrapped arrays.

The streams are NumPy's own: generators, legacy functions and bit generators run in NumPy, arrays among
their arguments (``out=``, ``p=``, the array to shuffle) are passed as plain ones, and arrays among their
results are wrapped.  The legacy functions share NumPy's global state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core import config
from dcarray.core.backend import NOT_DISTRIBUTED, backend
from dcarray.core.device_backend import device_backend
from dcarray.core.processes import communicator

from . import fallback
from .native_routes import made_by_generator


def _distributed_draw(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a distributed draw, if there are several ranks; else `NOT_DISTRIBUTED`."""
    if communicator() is None:
        return NOT_DISTRIBUTED
    return backend().distributed_random(function, args, kwargs)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        drawn = _distributed_draw(function, args, kwargs)
        return fallback.call_numpy(function, args, kwargs) if drawn is NOT_DISTRIBUTED else drawn

    return call


def _shuffling(function: Callable[..., Any], where: int) -> Callable[..., Any]:
    @wraps(function)
    def shuffle(*args: Any, **kwargs: Any) -> Any:
        x = args[where] if len(args) > where else kwargs.get("x")
        if isinstance(x, (ndarray, np.ndarray)):
            return fallback.call_numpy(function, args, kwargs)
        return function(*args, **kwargs)  # a sequence, perhaps of wrapped arrays, in place

    return shuffle


def _inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls the method of the NumPy generator inside the wrapper: NumPy's methods call
    each other."""
    if function.__name__ == "shuffle":
        shuffle = _shuffling(function, 1)

        @wraps(function)
        def shuffling(self: Any, *args: Any, **kwargs: Any) -> Any:
            return shuffle(self._plain, *args, **kwargs)

        return shuffling

    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        drawn = _distributed_draw(getattr(self._plain, function.__name__), args, kwargs)
        if drawn is not NOT_DISTRIBUTED:
            return drawn
        device = config.current().device
        if device != "cpu":
            drawn = device_backend().drawn(device, function.__name__, self._plain, args, kwargs)
            if drawn is not None:
                return drawn
        if fallback.hold_no_arrays(args, kwargs):
            return fallback.wrap_results(function(self._plain, *args, **kwargs))
        return fallback.call_numpy(function, (self._plain, *args), kwargs)

    if function.__name__ in _NUMBERS:
        return made_by_generator(function, call)  # type: ignore[no-any-return]
    return call


# Methods that return numbers or arrays, and no sequences of them.
_NAMES = """
binomial exponential integers normal permutation poisson rand randint randn random random_sample
standard_exponential standard_normal uniform
"""
_NUMBERS = frozenset(_NAMES.split())


class _LazyMethod:
    """A method of a generator that is made at its first use, since programs use few of the some ninety
    methods."""

    __slots__ = ("_cls", "_name")

    def __init__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: Any, cls: type | None = None) -> Any:
        method = _inside(getattr(self._cls.__base__, self._name))
        setattr(self._cls, self._name, method)
        return method.__get__(instance, cls)


def _with_wrapped_arrays(cls: type) -> type:
    """Return a class decorator by which every public method of the base class takes and returns wrapped
    arrays."""
    for name in dir(cls.__base__):
        if not name.startswith("_") and name not in vars(cls) and callable(getattr(cls.__base__, name)):
            setattr(cls, name, _LazyMethod(cls, name))
    return cls


@_with_wrapped_arrays
class Generator(np.random.Generator):
    """`numpy.random.Generator` whose arrays are wrapped."""

    def __init__(self, bit_generator: Any) -> None:
        super().__init__(bit_generator)
        self._plain = np.random.Generator(bit_generator)

    def spawn(self, n_children: int) -> Any:
        """Return independent child generators."""
        return [type(self)(bits) for bits in self.bit_generator.spawn(n_children)]

    def __reduce__(self) -> Any:
        return type(self), (self.bit_generator,)


@_with_wrapped_arrays
class RandomState(np.random.RandomState):
    """`numpy.random.RandomState` whose arrays are wrapped."""

    def __init__(self, seed: Any = None) -> None:
        self._plain = fallback.call_numpy(np.random.RandomState, (seed,), {})
        super().__init__(self._plain._bit_generator)

    def __reduce__(self) -> Any:
        return _random_state, (self.get_state(legacy=False),)


def _random_state(state: Any) -> RandomState:
    generator = RandomState()
    generator.set_state(state)
    return generator


def over(value: Any) -> Any:
    """Return a wrapped generator that draws from a given one of NumPy's own class; anything else as it is.

    NumPy's own `shuffle` treats a wrapped array as a sequence, and would lose rows by exchanging views of
    them.
    """
    generator: Any
    if type(value) is np.random.Generator:
        generator = Generator(value.bit_generator)
    elif type(value) is np.random.RandomState:  # has state besides that of its bit generator
        generator = RandomState(value._bit_generator)
    else:
        return value
    generator._plain = value
    return generator


class _Seeded(type):
    """The metaclass of stand-ins for NumPy's classes, which take wrapped arrays as seeds."""

    _original: type

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(meta, name, bases, body)
        return type(name, tuple(vars(base).get("_original", base) for base in bases), body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return fallback.call_numpy(cls._original, args, kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls._original)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, cls._original)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._original, name)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls._original

    def __hash__(cls) -> int:
        return hash(cls._original)


def default_rng(seed: Any = None) -> Generator:
    """Return a new `Generator` with NumPy's default bit generator.

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
    if seed is None and (comm := communicator()) is not None:
        seed = backend().shared_seed(comm)
    return Generator(fallback.call_numpy(np.random.default_rng, (seed,), {}).bit_generator)


def function(name: str) -> Any:
    """Return the counterpart of a name of `numpy.random`: a wrapped function, a seeded class, or NumPy's
    object."""
    value = getattr(np.random, name)
    if name == "shuffle":
        return _shuffling(value, 0)
    if isinstance(value, type) and issubclass(value, (np.random.BitGenerator, np.random.SeedSequence)):
        return _Seeded(name, (), {"_original": value, "__doc__": value.__doc__})
    if callable(value) and not isinstance(value, (type, ModuleType)) and not name.startswith("_"):
        return _method(value)
    return value
