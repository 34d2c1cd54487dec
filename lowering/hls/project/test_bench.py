"""The writer of a project's test bench, which runs the kernel on data and compares the results."""

from __future__ import annotations

from ..kernels.blocks import indented
from ..simulation import csim
from .design import TEMPLATES, Design


def header(design: Design) -> str:
    """Return the header with the declarations of the kernel, and of its processes for C simulation."""
    given = ", ".join(a.declared for a in design.arguments)
    lines = ["#pragma once", "#include <cstdint>", ""]
    if design.board.target == "vitis":
        lines += ["// the kernel", f'extern "C" void {design.name}({given});', ""]
    lines += ["// its processes, at the same time", f"void {design.name}_processes({given});", ""]
    return "\n".join(lines)


def test_bench(design: Design) -> str:
    """Return the C++ program that runs a network on data and compares results.

    The macro ``RUN`` is what it calls: the processes in the project's C simulation, the kernel in the
    vendor's.
    """
    run = f"{design.name}_processes" if design.board.target == "intel" else design.name
    lines = [
        f"// Test bench of {design.source}: results for data/*.npy are compared with data/expected/*.npy.",
        '#include "npy.h"',
        f'#include "{design.name}.h"',
        "",
        "#ifndef RUN",
        f"#define RUN {run}",
        "#endif",
        "",
        "int main(int count, char **given) {",
        '  const std::string folder = count > 1 ? given[1] : ".";',
        *indented(prepared(design)),
        f"  RUN({', '.join(a.name + ('[0]' if a.is_value else '.data()') for a in design.arguments)});",
        *indented(compared(design)),
        "}",
        "",
    ]
    return "\n".join(lines)


def prepared(design: Design) -> list[str]:
    """Return the C++ statements that define a vector for each argument, and load those that have files."""
    lines = []
    for a in design.arguments:
        if a in design.given:
            lines.append(f'auto {a.name} = npy::load<{a.type}>(folder + "/{a.file}", {a.count});')
        else:
            lines.append(f"std::vector<{a.type}> {a.name}({max(a.count, 1)});")
    return lines


def compared(design: Design) -> list[str]:
    """Return the C++ statements that compare the results and return whether all agree."""
    lines = ["bool right = true;"]
    for a in design.results:
        lines.append(
            f'right &= npy::agree("{a.array.name}", {a.name}.data(), folder + "/{a.file}", {a.count}, '
            f"{a.tolerance});"
        )
    return [*lines, 'puts(right ? "passed" : "FAILED");', "return !right;"]


def processes(design: Design) -> str:
    """Return the C++ text that runs the kernel's processes as coroutines, with FIFOs of their depths."""
    language = csim.LANGUAGES[design.board.target]
    given = ", ".join(a.declared for a in design.arguments)
    lines = [
        f"// C simulation of {design.source}: processes take turns, FIFOs have their depths.",
        "#include <cmath>",
        "#include <cstdint>",
        f'#include "{language.headers[0].name}"',
        f'#include "{design.name}.h"',
        f'#include "{design.name}.cpp"',
        "",
        f"void {design.name}_processes({given}) {{",
        *language.begin(design.network, design.name),
        *language.stages(design.network, design.name),
        "}",
        "",
    ]
    return "\n".join(lines)


def support(design: Design) -> dict[str, str]:
    """Return the files that the test bench needs, by their path in the project."""
    language = csim.LANGUAGES[design.board.target]
    files = {f"test/csim/{path.name}": path.read_text() for path in language.headers}
    files["test/npy.h"] = (TEMPLATES / "npy.h").read_text()
    return files


def opencl_as_cpp() -> str:
    """Return the ``sed`` script that turns kernels in Intel's OpenCL into C++."""
    lines = ["# kernels in OpenCL as C++, for C simulation"]
    for pattern, replacement in csim.OPENCL_AS_CPP:
        portable = pattern.replace(r"\w", "[A-Za-z0-9_]").replace(r"\d", "[0-9]")
        lines.append(f"s#{portable}#{replacement}#")
    return "\n".join([*lines, ""])
