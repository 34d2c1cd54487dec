"""The constructs of Python that dcarray compiles: a loop for each, and whether it runs as compiled code.

``python -m conformance.language`` prints the table of ``docs/language.md``; a test runs every loop.  The
columns for Numba and Pythran are from their documentation.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ROWS", "Row", "arguments", "source", "table"]


class Row(NamedTuple):
    """A construct of Python, and how the compilers treat it.

    Attributes
    ----------
    name : str
    body : str
        The body of a function of ``x``, 50 floats, ``n``, an int, and ``l``, a list of floats.
    compiled : str
        "yes", or what dcarray does instead.
    numba, pythran : str
        "yes", "no", or what Numba and Pythran do.
    head : str
        Source text before the function.
    """

    name: str
    body: str
    compiled: str
    numba: str
    pythran: str
    head: str


# For each row its name, whether dcarray, Numba and Pythran compile it if one of them does not, what stands
# before the function, if anything does, and the function.
_TEXT = Path(__file__).with_name("language_rows.txt").read_text()


def _row(text: str) -> Row:
    title, _, code = text.partition("\n")
    name, *kinds = title.split(" | ")
    head, _, body = code.rpartition("--\n")
    return Row(name, body.rstrip("\n"), *(kinds or ["yes"] * 3), head)


ROWS = tuple([_row(part) for part in ("\n" + _TEXT).split("\n== ")[1:]])


def source(row: Row) -> str:
    """Return the source of a row's function."""
    return f"{row.head}def f(x, n, l, g=None):\n{textwrap.indent(row.body, '    ')}\n"


def arguments() -> tuple[Any, ...]:
    """Return the arguments of the functions."""
    return np.linspace(-1.0, 2.0, 50), 50, [float(k) for k in range(50)]


def table() -> str:
    """Return the table as Markdown."""
    out = ["| construct | compiled | Numba | Pythran |", "|---|---|---|---|"]
    out += [f"| {row.name} | {row.compiled} | {row.numba} | {row.pythran} |" for row in ROWS]
    return "\n".join(out)


if __name__ == "__main__":
    print(table())
