"""NVRTC, NVIDIA's compiler of CUDA C++ to machine code, without a GPU or driver; the resources of
functions."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from dcarray.ir.records import record
from dcarray.lowering.errors import Unsupported

__all__ = ["INSTALL", "Code", "Resources", "compile_source", "options", "unavailable", "version"]

INSTALL: Final = "pip install 'dcarray[nvrtc]'"


def options(narrow: bool) -> tuple[str, ...]:
    """Return the options with which NVRTC keeps the arithmetic as it is written.

    Parameters
    ----------
    narrow : bool
        Whether indices have 32 bits; else they have 64.
    """
    index = "int" if narrow else "long long"
    return f"-DINDEX={index}", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"


@record(frozen=True, slots=True)
class Resources:
    """The registers of each thread of a function, and in bytes its stack and spills, and the shared memory of
    a block."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int

    @property
    def spills(self) -> bool:
        """Whether values are kept in memory because there are too few registers."""
        return bool(self.spill_stores or self.spill_loads)


@record(frozen=True, slots=True)
class Code:
    """Machine code (a cubin), with the resources of each of its functions."""

    cubin: bytes
    functions: dict[str, Resources]


@cache
def unavailable() -> str | None:
    """Return why NVRTC cannot be used, with the command that installs it; None if it can be used."""
    try:
        from cuda.bindings import nvrtc

        status, *_ = nvrtc.nvrtcVersion()  # the first call loads the library
    except ImportError as error:
        return f"NVRTC cannot be imported ({error}): {INSTALL}"
    except Exception as error:  # whatever the search for the library raises
        return f"NVRTC's library cannot be loaded ({error}): {INSTALL}"
    return None if int(status) == 0 else f"NVRTC does not work ({status}): {INSTALL}"


@cache
def version() -> str:
    """Return the version of NVRTC, which must be installed."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def compile_source(source: str, architecture: str, narrow: bool = True) -> Code:
    """Compile the CUDA C++ text of a kernel to machine code.

    Parameters
    ----------
    source : str
        The text of a kernel.
    architecture : str
        Such as ``"sm_90"``.
    narrow : bool, optional
        Whether indices have 32 bits; else they have 64.

    Raises
    ------
    Unsupported
        If there is no NVRTC, or if it refuses the text; then the message has the compiler's log.
    """
    reason = unavailable()
    if reason is not None:
        raise Unsupported(reason)
    from cuda.bindings import nvrtc

    def checked(result: tuple[Any, ...]) -> Any:
        status, *values = result
        if int(status):
            raise Unsupported(f"NVRTC: {status}")
        return values[0] if values else None

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    try:
        # what comes from NVRTC's own cache, which there is beside a driver, has no log
        verbose = "--ptxas-options=-v", "--no-cache"
        flags = [f"--gpu-architecture={architecture}", *verbose, *options(narrow)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program)))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        text = log.decode(errors="replace").rstrip("\0 \n")
        if int(status):
            raise Unsupported(f"NVRTC refuses a kernel: {text}")
        cubin = bytearray(checked(nvrtc.nvrtcGetCUBINSize(program)))
        checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Code(bytes(cubin), resources(text))


def resources(log: str) -> dict[str, Resources]:
    """Return the resources of each function from the log of the assembler (``--ptxas-options=-v``)."""
    by_name: dict[str, Resources] = {}
    name, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name, frame = match[1], (0, 0, 0)
        elif match := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill", line
        ):
            frame = int(match[1]), int(match[2]), int(match[3])
        elif name and (match := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            by_name[name] = Resources(int(match[1]), *frame, int(shared[1]) if shared else 0)
    return by_name
