"""Modules with sites: the code of a script, or of a module beside it, with sites in all of its functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from ..syntax.originals import originals
from .profiles import profile_of
from .sampler import SAMPLER
from .site import Site, sites_at, with_constants

__all__ = ["compile_module"]


def compile_module(
    source: str | bytes, file: str, names: dict[str, Any], is_script: bool, eagerly: bool = False
) -> CodeType:
    """Return the code of a module with sites.

    Parameters
    ----------
    source : str or bytes
    file : str
    names : dict
        The module's global names, as they will be when it runs.
    is_script : bool
        Whether nobody else imports its names.
    eagerly : bool, optional
        Whether the outermost sites ask for plans at once.

    Raises
    ------
    SyntaxError, ValueError
        As `compile` does.
    """
    plain = compile(source, file, "exec", dont_inherit=True)  # with the warnings and errors of the source
    profile = profile_of(source, file, is_script)
    module = profile.module() if profile else None
    if module is None:
        from .module_sites import rewritten

        try:
            with _unwarned():
                module = rewritten(source, file, is_script)
        except (SyntaxError, ValueError, RecursionError):
            return plain
    sites = sites_at(module.places, names)
    made = with_constants(module.code, sites)
    for site in sites:
        site.enabled = eagerly and site.outer is None
    _pair(made, plain, {code: [sites[k] for k in found] for code, found in module.places_of.items()})
    if profile:
        profile.begin(module, sites)
    return made


@contextmanager
def _unwarned() -> Iterator[None]:
    """A context in which the compiler does not warn again of what it has warned of.

    The list of filters is changed itself: `warnings.catch_warnings` would have all warnings that have been
    shown once be shown again."""
    added: list[Any] = [("ignore", None, kind, None, 0) for kind in (SyntaxWarning, DeprecationWarning)]
    filters: Any = warnings.filters
    filters[:0] = added
    try:
        yield
    finally:
        for one in added:
            filters.remove(one)


def _pair(made: CodeType, plain: CodeType, sites_of: dict[tuple[str, int], list[Site]]) -> None:
    """Note for each code object with sites the original, and have it watched."""
    if made.co_code != plain.co_code or made.co_consts != plain.co_consts:
        originals[id(made)] = made, plain
        sites = sites_of.get((made.co_name, made.co_firstlineno))
        if sites:
            SAMPLER.add(made, sites)
    pairs = zip(
        [c for c in made.co_consts if type(c) is CodeType],
        [c for c in plain.co_consts if type(c) is CodeType],
        strict=True,
    )
    for inner, before in pairs:
        _pair(inner, before, sites_of)
