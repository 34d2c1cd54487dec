"""Modules with sites: the code of a script, or of a module beside it, with sites in all of its functions."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from dcarray.core.counters import note
from dcarray.core.faults import passed_over
from dcarray.lowering.runtime.parsing import parse

from ..syntax.source import unwarned
from ..syntax.stubs import functions_in, stub_of
from .asking import note_source
from .profiles import profile_of
from .site import Site, sites_at
from .sited_module import SitedModule

__all__ = ["compile_module"]

HOT_SECONDS = 0.1  # seconds in a run that was watched, with which a function is hot at once


def compile_module(
    source: str | bytes, file: str, names: dict[str, Any], is_script: bool, eagerly: bool = False,
    plain: CodeType | None = None,
) -> CodeType:  # fmt: skip
    """Return the code of a module with sites.

    Parameters
    ----------
    source : str or bytes
    file : str
    names : dict
        The dictionary that will hold the module's global names when it runs.
    is_script : bool
        Whether it is the script, whose global names no other module imports.
    eagerly : bool, optional
        Whether the outermost sites ask for plans at once.
    plain : code, optional
        The code without sites, if it is known.

    Raises
    ------
    SyntaxError, ValueError
        If the source cannot be compiled.
    """
    note_source(source)
    plain = plain or compile(source, file, "exec", dont_inherit=True)  # with the warnings of the source
    try:
        return _with_sites(plain, source, file, names, is_script, eagerly)
    except Exception as error:  # the program has to run all the same
        passed_over(error, (file, 1))
        return plain


def _with_sites(
    plain: CodeType, source: str | bytes, file: str, names: dict[str, Any], is_script: bool, eagerly: bool
) -> CodeType:
    """Return what `compile_module` does, for a module whose code without sites is ``plain``."""
    profile = profile_of(source, file, is_script)
    module = profile.module() if profile else None
    if module is None:
        from .module_sites import rewritten

        try:
            with unwarned():
                module = rewritten(source, file, is_script)
        except (SyntaxError, ValueError, RecursionError):
            return plain
    sites = sites_at(module.places, names)
    for site in sites:
        site.enabled = eagerly and site.outer is None
    left = profile.begin(module, sites) if profile else frozenset()
    sited = module.filled(plain, sites, left)
    _heat_hinted(source, file, module, sites)
    return sited


def _heat_hinted(source: str | bytes, file: str, module: SitedModule, sites: Sequence[Site]) -> None:
    """Have functions that the module's stub file describes ask for plans in their first call.  These
    functions take arrays, and took long enough in the run from which the stub was made."""
    stub = stub_of(file)
    if stub is None or not sites:
        return
    if stub.problem:
        note(stub.problem, kind="loop", where=(file, 1))
        return
    for name, tree in functions_in(parse(source)):
        if name not in stub:
            continue
        hint = stub.hint(name, tree.args)
        line = min([tree.lineno, *[one.lineno for one in tree.decorator_list]])
        if isinstance(hint, str):
            note(hint, kind="loop", where=(file, line))
            continue
        for number in module.places_of.get((tree.name, line), ()):
            site = sites[number]
            if hint.has_arrays and hint.seconds >= HOT_SECONDS and site.outer is None and not site.doubtful:
                site.known = True
                site.heat()
