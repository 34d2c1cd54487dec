"""The files of a project for AMD's Vitis: kernel, XRT host program, build files."""

from __future__ import annotations

from ..kernels import vitis
from ..kernels.blocks import indented
from .design import Design
from .test_bench import compared, prepared

_KERNEL_CFG = """# for v++ --compile and --link
kernel_frequency=@clock@
"""


def files(design: Design) -> dict[str, str]:
    """Return the files that only Vitis needs, by their path in the project."""
    return {
        f"kernel/{design.name}.cpp": design.filled(_HEAD) + vitis.emit(design.network, design.name),
        "host/host.cpp": _host(design),
        "Makefile": design.template("vitis.mk"),
        "hls.tcl": design.template("hls.tcl"),
        "kernel.cfg": design.filled(_KERNEL_CFG),
        "connectivity.cfg": _connectivity(design),
    }


_HEAD = "// @source@ as C++ for Vitis HLS, for the @board@ at @clock@ MHz.\n"


def _connectivity(design: Design) -> str:
    """Return the configuration file that connects each port with its memory bank."""
    lines = [f"# one compute unit; banks of the {design.board.title}", "[connectivity]"]
    lines.append(f"nk={design.name}:1:{design.name}_1")
    memory = design.board.memory
    lines += [f"sp={design.name}_1.{a.name}:{memory}[{a.bank}]" for a in design.arguments if not a.is_value]
    return "\n".join([*lines, ""])


def _host(design: Design) -> str:
    lines = list(prepared(design))
    lines += [
        "auto device = xrt::device(0);",
        'auto kernel = xrt::kernel(device, device.load_xclbin(given[1]), "@name@");',
    ]
    given = ", ".join(a.name + ("[0]" if a.is_value else "_bo") for a in design.arguments)
    for number, a in enumerate(design.arguments):
        if a.is_value:
            continue
        size = f"{a.name}.size() * sizeof({a.type})"
        lines.append(f"auto {a.name}_bo = xrt::bo(device, {size}, kernel.group_id({number}));")
    for a in (one for one in design.given if not one.is_value):
        lines += [f"{a.name}_bo.write({a.name}.data());", f"{a.name}_bo.sync(XCL_BO_SYNC_BO_TO_DEVICE);"]
    lines += [
        "auto start = std::chrono::steady_clock::now();",
        f"auto run = kernel({given});",
        "run.wait();",
        "std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;",
        'printf("the kernel took %.3f ms\\n", taken.count());',
    ]
    for a in design.results:
        lines += [f"{a.name}_bo.sync(XCL_BO_SYNC_BO_FROM_DEVICE);", f"{a.name}_bo.read({a.name}.data());"]
    return design.filled(
        "\n".join(
            [design.template("xrt_host.cpp").rstrip("\n"), *indented([*lines, *compared(design)]), "}", ""]
        )
    )
