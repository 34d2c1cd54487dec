"""``dc.export``: a function or region as a folder for the tools of FPGA vendors."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.errors import ProgramError
from dcarray.ir.nodes import Region

if TYPE_CHECKING:
    from dcarray.lowering.hls.project.write import Project

__all__ = ["export"]


def export(
    what: Any,
    /,
    *args: Any,
    target: str,
    path: str | Path | None = None,
    name: str | None = None,
    board: str | None = None,
    clock: int | None = None,
    width: int | None = None,
    sizes: Mapping[str, int] | None = None,
    **kwargs: Any,
) -> Project:
    """Make a project for FPGA tools of a function: kernel, host program, build files, test bench and data.

    Parameters
    ----------
    what : function or Region
        A function of arrays and numbers, also one of `dcarray.program` or `dcarray.accelerate`, or the region
        of one.  It does not run.
    *args, **kwargs
        An example of its arguments, which the project has as test data.  Shapes are those of the example,
        integers are constants; other numbers are arguments of the kernel.  An array or real number that is
        not given has the type of its annotation, and random values.  Of a region: the values of the arrays
        that it is given, by name.
    target : {"vitis", "intel"}
        For AMD's Vitis (C++ for Vitis HLS, XRT) or Intel's FPGA SDK (OpenCL).
    path : path, optional
        The folder to write; by default nothing is written.
    name : str, optional
        What the kernel is called; by default as the function.
    board : str, optional
        "u250" (default), "u280" or "u55c" of the target "vitis", "520n" (default) or "a10" of "intel".
    clock : int, optional
        The frequency to ask for, in MHz; by default the board's.
    width : int, optional
        How many elements streams and ports carry at a time at most: a power of 2.  By default as many as fit
        into 512 bits, if the board has the hardware.  They are fewer where the rows of an array in memory are
        no multiple of it, or where it is not possible: ``network`` has the reason.
    sizes : mapping of str to int, optional
        Values of the symbols of annotations.

    Returns
    -------
    Project
        ``files`` has the texts, ``network`` the circuit, ``path`` the folder.

    Raises
    ------
    ProgramError
        If the function does not compile, or its region cannot be a circuit: it needs the host, has complex
        numbers or float16, or needs more memory than the board has.  The text names the statement.
    TypeError, ValueError
        If an argument or option is not understood, or a size is not known.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> def smooth(x):
    ...     return 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    >>> project = dc.export(smooth, np.ones(100), target="vitis")  # doctest: +SKIP
    >>> print(project.files["kernel/smooth.cpp"])  # doctest: +SKIP
    """
    from dcarray.jit.program.static_region import located, static_region
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.hls.project.boards import board_of
    from dcarray.lowering.hls.project.write import project

    card = board_of(target, board)
    clock = card.clock if clock is None else clock
    if type(clock) is not int or not 1 <= clock <= 1000:
        raise ValueError(f"clock is a frequency in MHz from 1 to 1000, not {clock!r}")
    memory: Mapping[str, Any]
    if isinstance(what, Region):
        if args:
            raise TypeError("the arrays of a region are given by name")
        region, memory, source, file, line = what, _memory(what, kwargs), "a region", "<region>", 0
        name = "kernel" if name is None else name
    else:
        static = static_region(what, args, kwargs, sizes)
        region, memory = static.region, static.memory
        file, line = located(what)
        source = f"{static.name} ({Path(file).name}:{line})"
        name = static.name if name is None else name
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii() or name == "main":
        raise ValueError(f"name is an identifier of C, not {name!r}")
    try:
        design = project(region, memory, name, source, card, clock, width)
    except Unsupported as error:
        raise ProgramError(str(error), file, line) from None
    return design if path is None else design.write(path)


def _memory(region: Region, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the arrays of a region."""
    inputs = {array.name: array for array in region.arrays if array.role in ("in", "inout")}
    if region.symbols:
        names = ", ".join(symbol.name for symbol in region.symbols)
        raise ValueError(f"buffers on the chip are static, but {names} of the region is not known")
    unknown, missing = given.keys() - inputs.keys(), inputs.keys() - given.keys()
    if unknown or missing:
        raise TypeError(
            f"the region is given {', '.join(inputs) or 'no arrays'}, not {', '.join(given) or 'none'}"
        )
    memory = {}
    for key, array in inputs.items():
        value = np.asarray(given[key])
        if value.dtype != array.dtype or value.shape != array.shape:
            raise ValueError(
                f"{key} is {array.dtype.name} of shape {array.shape}, not {value.dtype.name} of {value.shape}"
            )
        memory[key] = value
    return memory
