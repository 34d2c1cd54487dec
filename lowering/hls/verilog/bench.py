"""The C++ program that simulates a circuit with Verilator: it acts as the memory and counts cycles."""

from __future__ import annotations

from math import prod

from ..kernels.blocks import indented
from ..kernels.vitis import HLS
from ..network.arguments import arguments
from ..network.nodes import Network
from .emit import Design, Port


def bench(network: Network, design: Design, top: str) -> str:
    """Return the C++ text of the program.

    It reads the buffers that no process writes from its first argument, a file, in the order of
    `arguments.arguments`, and writes the others to its second argument.  It prints the cycles of each stage
    on a line.  Its exit status is 3 if no process can go on.
    """
    arrays = {array.name: array for array in network.region.arrays}
    lines = ["#include <cstdint>", "#include <cstdio>", "#include <cstdlib>", "#include <cstring>"]
    lines += ["#include <vector>", f'#include "V{top}.h"', '#include "verilated.h"', ""]
    for buffer, _ in arguments(network):
        array = arrays[buffer.array]
        kind = HLS.type(array.dtype)
        lines.append(f"static std::vector<{kind}> {buffer.pointer}({max(prod(array.shape), 1)});")
    lines += ["", *_settle(design, top), "", *_write(design, top), "", _RUN.replace("TOP", f"V{top}")]
    lines += ["int main(int count, char **given) {", "  if (count != 3) return 2;"]
    lines.append('  FILE *file = fopen(given[1], "rb");')
    for buffer, written in arguments(network):
        array, name = arrays[buffer.array], buffer.pointer
        size = prod(array.shape)
        if not written and size:
            kind = HLS.type(array.dtype)
            lines.append(f"  if (fread({name}.data(), sizeof({kind}), {size}, file) != {size}) return 2;")
    lines += ["  fclose(file);", f"  V{top} *top = new V{top};"]
    for number, copies in enumerate(design.copies):
        for source, target in copies:
            lines.append(f"  {target.pointer} = {source.pointer};")
        lines += [f"  if (run(top, {number})) return 3;"]
    lines.append('  file = fopen(given[2], "wb");')
    for buffer, written in arguments(network):
        array = arrays[buffer.array]
        if written and prod(array.shape):
            kind, size = HLS.type(array.dtype), prod(array.shape)
            lines.append(f"  fwrite({buffer.pointer}.data(), sizeof({kind}), {size}, file);")
    return "\n".join([*lines, "  fclose(file);", "  return 0;", "}", ""])


_RUN = """static int run(TOP *top, int stage) {
  top->stage = stage;
  top->rst = 1;
  top->clk = 0; settle(top);
  top->clk = 1; top->eval();
  top->rst = 0;
  long cycles = 0;
  for (;;) {
    top->clk = 0;
    settle(top);
    if (top->done) break;
    if (!top->moves) { fprintf(stderr, "no process can go on after %ld cycles\\n", cycles); return 1; }
    store(top);
    top->clk = 1; top->eval();
    cycles++;
  }
  printf("%ld\\n", cycles);
  return 0;
}
"""


def _settle(design: Design, top: str) -> list[str]:
    """Return the C++ function that answers the addresses at the memory ports until they are stable: a
    gather's address depends on data that was read."""
    body = ["top->eval();"]
    reads = [port for port in design.ports if not port.writes]
    for port in reads:
        name, at = port.buffer.pointer, f"top->{port.name}_addr"
        body.append(f"top->{port.name}_data = {at} < {name}.size() ? {name}[{at}] : 0;")
    body += ["top->eval();"]
    rounds = 3 if reads else 1
    return [
        f"static void settle(V{top} *top) {{",
        f"  for (int k = 0; k < {rounds}; k++) {{",
        *indented(indented(body)),
        "  }",
        "}",
    ]


def _write(design: Design, top: str) -> list[str]:
    def one(port: Port) -> str:
        to = f"{port.buffer.pointer}[top->{port.name}_addr]"
        return f"  if (top->{port.name}_en) {to} = top->{port.name}_data;"

    return [f"static void store(V{top} *top) {{", *(one(p) for p in design.ports if p.writes), "}"]
