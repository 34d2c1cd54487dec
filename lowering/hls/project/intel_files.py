"""The files of a project for Intel's FPGA SDK for OpenCL: kernels, OpenCL host program, build files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ..kernels import intel
from ..kernels.blocks import indented, repeated
from ..network.nodes import Buffer
from .design import Design
from .test_bench import compared, opencl_as_cpp, prepared

_HEAD = "// @source@ as OpenCL for Intel's FPGA SDK, for the @board@ at @clock@ MHz.\n"


def files(design: Design) -> dict[str, str]:
    """Return the files that only Intel's tools need, by their path in the project."""
    native = design.board.native_accumulation
    text = intel.emit(design.network, design.name, native_accumulation=native)
    return {
        f"kernel/{design.name}.cl": design.filled(_HEAD) + text,
        "host/host.cpp": _host(design),
        "test/csim/opencl_as_cpp.sed": opencl_as_cpp(),
        "Makefile": design.template("intel.mk"),
    }


def _host(design: Design) -> str:
    lines = list(prepared(design))
    values = {a.buffer for a in design.arguments if a.is_value}
    for a in (one for one in design.arguments if not one.is_value):
        size = f"{a.name}.size() * sizeof({a.type})"
        lines.append(f"cl_mem {a.name}_mem = buffer(context, {size}, {a.bank});")
    for a in (one for one in design.given if not one.is_value):
        lines.append(_copied("Write", a.name, a.type))
    lines.append("auto start = std::chrono::steady_clock::now();")
    stages = intel.kernels(design.network, design.name)
    for numbers, times in design.network.runs():
        lines += repeated(times, [line for k in numbers for line in _started(stages[k], values)])
    lines += [
        "std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;",
        'printf("the kernels took %.3f ms\\n", taken.count());',
    ]
    lines += [_copied("Read", a.name, a.type) for a in design.results]
    return design.filled(
        "\n".join(
            [design.template("opencl_host.cpp").rstrip("\n"), *indented([*lines, *compared(design)]), "}", ""]
        )
    )


def _started(kernels: Sequence[intel.Kernel], values: Set[Buffer]) -> Iterator[str]:
    """Yield the host program's statements that run the kernels of a stage."""
    yield "run(context, device, program, {"
    for kernel in kernels:
        given = ", ".join(
            f"argument({b.pointer}{'[0]' if b in values else '_mem'})" for b in kernel.arguments
        )
        yield f'  {{"{kernel.name}", {{{given}}}}},'
    yield "});"


def _copied(verb: str, name: str, kind: str) -> str:
    size = f"{name}.size() * sizeof({kind})"
    return (
        f"check(clEnqueue{verb}Buffer(queue, {name}_mem, CL_TRUE, 0, {size}, {name}.data(), 0, nullptr, "
        f'nullptr), "{name}");'
    )
