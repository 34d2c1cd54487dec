"""``dc.accelerate``: functions, classes and modules whose hot parts run as compiled code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps
from importlib.machinery import ExtensionFileLoader
from types import FunctionType, ModuleType, TracebackType
from typing import Any, TypeVar, cast, overload

from dcarray.core import config, floor
from dcarray.plans.background import BACKGROUND

from .loops.sites.functions import functions_of, give, put_sites, remove_sites, with_sites
from .loops.sites.site import Site
from .loops.sites.site_plans import plans_at_once
from .loops.syntax.originals import wrapping
from .patching import module_names
from .wrapped_mode import call_wrapped, is_needed

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)


# ---- modules and classes ------------------------------------------------------------------------------
def _functions_in(scope: type | ModuleType, module: str) -> Iterator[FunctionType]:
    """Yield the functions of a module or class, and those of its classes, which may nest."""
    scopes = {id(scope): scope}
    for owner in (todo := [scope]):
        for value in list(vars(owner).values()):
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if isinstance(value, property):
                value = value.fget
            if type(value) is FunctionType and value.__module__ == module:
                yield value
            elif isinstance(value, type) and value.__module__ == module and id(value) not in scopes:
                scopes[id(value)] = value
                todo.append(value)


class Accelerated:
    """Modules of which the hot parts run as compiled code until `undo`, or the end of the ``with`` block."""

    def __init__(self, modules: tuple[ModuleType, ...]) -> None:
        self._names = tuple(module.__name__ for module in modules)
        self._functions: list[FunctionType] = []
        self._held = []
        if is_needed():
            self._held = [module_names(vars(module)) for module in modules]
            for scope in self._held:
                scope.enter()
        self._active = True
        for module in modules:
            functions = [*_functions_in(module, module.__name__)]
            self._functions += functions
            if config.current().jit == "eager":
                self._put(functions)
            elif config.current().jit != "off":  # to read the sources of a large module takes a while
                BACKGROUND.submit(partial(self._put, functions))

    def _put(self, functions: list[FunctionType]) -> None:
        for function in functions:
            if self._active:
                _heat(put_sites(function))

    def undo(self) -> None:
        """Restore the modules' functions; further calls do nothing."""
        self._active = False
        while self._held:
            self._held.pop().leave()
        while self._functions:
            remove_sites(self._functions.pop())

    def __enter__(self) -> Accelerated:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "accelerated" if self._active else "no longer accelerated"
        return f"<{', '.join(self._names)}: {state}>"


def _module(target: ModuleType | str) -> ModuleType:
    module = sys.modules.get(target) if isinstance(target, str) else target
    if module is None:
        raise ValueError(f"module {target!r} is not imported")
    if not isinstance(module, ModuleType):
        raise TypeError(f"accelerate() takes a function, a class, or modules or their names, not {target!r}")
    if isinstance(getattr(module, "__loader__", None), ExtensionFileLoader):
        raise ValueError(f"module {module.__name__!r} is compiled code: accelerate what calls it")
    return module


def _heat(sites: list[Site]) -> None:
    """Let sites ask for plans from their first run on, the outermost ones first, if plans are made at
    once."""
    if plans_at_once():
        for site in sites:
            if site.may_begin:
                site.enabled = True


# ---- functions ----------------------------------------------------------------------------------------
def _class(kind: _C) -> _C:
    for function in _functions_in(kind, kind.__module__):
        _heat(put_sites(function))
    return kind


def _function(function: Any) -> Any:
    inner = inspect.unwrap(function)
    if not isinstance(inner, FunctionType):
        raise TypeError(
            f"accelerate() takes a function, a class, or modules or their names, not {function!r}"
        )
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        raise TypeError(f"{inner.__qualname__}() does not run when it is called: accelerate what it calls")
    prepared = sited(function, inner)

    @wraps(function)
    def accelerated(*args: Any, **kwargs: Any) -> Any:
        call = prepared()
        if is_needed():
            return call_wrapped(call, inner, args, kwargs)
        return call(*args, **kwargs)

    wrapper = cast(FunctionType, accelerated)
    # to be read: the function itself fills them in
    wrapper.__defaults__ = getattr(function, "__defaults__", None)
    wrapper.__kwdefaults__ = getattr(function, "__kwdefaults__", None)
    wrapping.add(wrapper.__code__)
    return wrapper


def sited(function: Any, inner: FunctionType) -> Callable[[], Any]:
    """Return a function that returns what to call in place of ``function``: a copy with sites, or the
    function itself if nothing is to be compiled.  ``inner`` is the function inside other decorators."""
    sites: list[Site] | None = None
    call = function

    def prepared() -> Any:
        nonlocal sites, call
        if sites is None and config.current().jit != "off":
            sites, call = _prepared(function, inner)
        if sites:
            _heat(sites)
        return call

    return prepared


def _prepared(function: Any, inner: FunctionType) -> tuple[list[Site], Any]:
    """Return the sites of a function and its callees, and the callable to use in its place: a copy with
    sites, so that the function stays as it is.  A function inside other decorators gets the sites itself."""
    others = [one for one in functions_of(inner) if one is not inner]
    sites = [site for one in others for site in put_sites(one)]
    if inner is not function:
        return [*put_sites(inner), *sites], function
    pair = with_sites(inner)
    if pair is None:
        return sites, function
    call = FunctionType(pair[0], inner.__globals__, inner.__name__, inner.__defaults__, inner.__closure__)
    call.__kwdefaults__, call.__qualname__ = inner.__kwdefaults__, inner.__qualname__
    call.__module__, call.__dict__ = inner.__module__, inner.__dict__
    give(call, pair[0])
    return [*pair[1], *sites], call


@overload
def accelerate(target: _F, /) -> _F: ...


@overload
def accelerate(*targets: ModuleType | str) -> Accelerated: ...


def accelerate(*targets: Any) -> Any:
    """Run the hot parts of functions, classes or whole modules as compiled code.

    Parameters
    ----------
    *targets : function, class, or modules or their names
        Either one function or class, also as a decorator; or modules, which must be imported: their functions
        are accelerated from now on, or, in a ``with`` statement, for the block.

    Returns
    -------
    function, class or Accelerated
        For a function, a function that does the same; for a class, the class.  For modules, an object whose
        method `undo` restores them.

    Raises
    ------
    ValueError
        If a module is not imported, or is compiled code.
    TypeError
        If a target is neither a function nor a class nor a module, or is a generator or coroutine function.

    Notes
    -----
    Arrays are NumPy's own: arguments, results, and all that the code makes.  What is hot, a loop or a run of
    statements, is compiled in the background, from its source and for the types of its values, and runs so
    from then on where that is faster; everything else runs as it is written.  Functions of the module that a
    function calls by name count as its parts.  `report` lists what is not compiled, with the reason.

    On a device (``dc.options(device=...)``), and where several ranks run the program, the arrays of
    accelerated code are wrapped: plain arrays among the arguments are wrapped for the call, what it writes to
    them is in place when it returns, and its results are plain unless a wrapped array was given.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> @dc.accelerate
    ... def step(u):
    ...     v = np.empty_like(u)
    ...     v[1:-1] = (u[:-2] + u[2:]) / 2
    ...     v[[0, -1]] = 0
    ...     return v
    >>> step(np.ones(4))
    array([0., 1., 1., 0.])

    >>> import matplotlib.colors                           # doctest: +SKIP
    >>> with dc.accelerate(matplotlib.colors):              # doctest: +SKIP
    ...     shade = matplotlib.colors.LightSource().hillshade(z)
    """
    floor.install()
    if len(targets) == 1 and isinstance(targets[0], type):
        return _class(targets[0])
    if len(targets) == 1 and callable(targets[0]):
        return _function(targets[0])
    if not targets:
        raise TypeError("accelerate() takes a function, a class, or modules or their names")
    return Accelerated(tuple([_module(target) for target in targets]))
