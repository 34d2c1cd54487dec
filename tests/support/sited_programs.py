"""Programs whose module has sites, compared with the same as they are written."""

import contextlib
import io
from pathlib import Path
from types import CodeType
from typing import Any

from dcarray.core.counters import settle
from dcarray.jit.loops.sites import modules
from dcarray.jit.loops.sites.site import Site


def heat(code: CodeType) -> None:
    """Have all sites of a code object ask for plans."""
    for one in code.co_consts:
        if isinstance(one, Site):
            one.heat()
        elif isinstance(one, CodeType):
            heat(one)


def compare(source: str, file: Path) -> int:
    """Compare what a program prints plainly, and with sites; returns how often these ran."""
    file.write_text(source)
    said = []
    for compiled in (False, True):
        names: dict[str, Any] = {"__name__": "__main__"}
        code = compile(source, file, "exec")
        if compiled:
            code = modules.compile_module(source, str(file), names, True)
            heat(code)
        before, text = settle().runs + settle().loops, io.StringIO()
        with contextlib.redirect_stdout(text):
            exec(code, names)
        said.append(text.getvalue())
    assert said[0] == said[1]
    return settle().runs + settle().loops - before
