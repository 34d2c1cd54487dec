"""The texts of a library, made from its functions: C source, header and Python loader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dcarray.ir.records import record
from dcarray.lowering.compilation import program_of
from dcarray.lowering.kernel.nodes import Kernel
from dcarray.lowering.program import nodes

from . import matmul_text
from .c_driver import function_text
from .header import header_text, prototype
from .interface import Function, Refused
from .loader import loader_text
from .size_text import HELPERS
from .target import DIALECT, printed, target

OPTIONS = ("-std=gnu11", "-O3", "-fopenmp-simd", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing")
"""What the C source is compiled with: nothing is contracted, reordered or assumed."""


@record(frozen=True, slots=True)
class Sources:
    """The source texts from which a C library is built, and the names of its functions.

    Attributes
    ----------
    c : str
        The C source of the functions, and of the kernels that are not compiled separately.
    header, loader : str
    exported : tuple of str
        The names of the library's functions.
    """

    c: str
    header: str
    loader: str
    exported: tuple[str, ...]


def sources(
    functions: Sequence[Function],
    stem: str,
    native: bool = True,
    blas: bool = False,
    separate: Callable[[Kernel, str], bool] | None = None,
) -> Sources:
    """Return the texts of a library.

    Parameters
    ----------
    functions : sequence of Function
    stem : str
        The library's name, an identifier.
    native : bool, optional
        Whether the library is for this machine, so that the sizes of caches are known.
    blas : bool, optional
        Whether matrix products are calls of a CBLAS.
    separate : callable, optional
        ``separate(kernel, prefix)`` compiles a kernel to an object, whose phases' names begin with
        ``prefix``, and returns whether it could; if so, the C source only declares the phases.

    Raises
    ------
    Refused
        If a function needs Python; the error names the file and line.
    """
    collected = _Kernels(separate)
    chosen, texts, multiplied = target(native), [], set()
    for function in functions:
        try:
            program = program_of(chosen.pipeline(1).run(function.region), chosen)
            head = prototype(function, stem, inside=True)
            name_of = partial(collected.prefix, function.checked)
            texts.append(function_text(function, program, head, f"{stem.upper()}_", name_of))
        except Refused as error:
            raise Refused(error.reason, error.place, function.name) from error
        multiplied |= _multiplied(program)
    header = header_text(tuple(functions), stem)
    parts = [
        "#include <stdlib.h>",
        header,
        matmul_text.functions_text(frozenset(multiplied), blas),
        DIALECT.head,
        "static _Thread_local int dc_failed;  /* a check of a value has failed */",
        HELPERS,
        *collected.helpers,
        "",
        *collected.phases,
        *texts,
    ]
    names = tuple([function.name for function in functions])
    loader = loader_text(tuple(functions), stem)
    return Sources("\n".join(parts), header, loader, names)


class _Kernels:
    """The kernels of a library, each once."""

    def __init__(self, apart: Callable[[Kernel, str], bool] | None) -> None:
        self._apart = apart
        self._known: dict[tuple[Kernel, bool], str] = {}
        self.helpers: list[str] = []
        self.phases: list[str] = []

    def prefix(self, only_c: bool, kernel: Kernel) -> str:
        """Return the prefix of the names of a kernel's phases; add the kernel if it is new."""
        key = kernel, only_c
        if key not in self._known:
            prefix = self._known[key] = f"dc_k{len(self._known)}_"
            if self._apart is not None and not only_c and self._apart(kernel, prefix):
                self.phases += [
                    f"int32_t {prefix}phase{k}(const int64_t *, int64_t, int64_t);"
                    for k in range(len(kernel.phases))
                ]
                return prefix
            text = printed(kernel, prefix)
            self.helpers += [helper for helper in text.helpers if helper not in self.helpers]
            self.phases += text.phases
        return self._known[key]


def _multiplied(program: nodes.Program) -> set[str]:
    """Return the type characters of the matrix products in a program."""
    arrays = {array.name: array for array in program.region.arrays}
    steps = [step for step in program.steps() if isinstance(step, nodes.LibraryCall)]
    return {arrays[step.stmt.writes[0].array].dtype.char for step in steps}
