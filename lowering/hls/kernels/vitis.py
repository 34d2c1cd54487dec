"""The printer of process networks in C++ for Vitis HLS: each process is a function, each stage a dataflow
region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dcarray.ir.nodes import Array
from dcarray.lowering.c_family.dialect import C_TYPES, Dialect

from ..network.arguments import arguments, process_arguments
from ..network.line_buffers import SHORTEST_DELAY
from ..network.nodes import Buffer, Fifo, Network, Stage, Work
from .blocks import indented, repeated
from .printer import ProcessPrinter

HLS = Dialect(
    "Vitis HLS",
    """#include <cmath>
#include <cstdint>
#include "hls_stream.h"
#define feraiseexcept(flags)  // there are no floating-point flags
#define isless(a, b) ((a) < (b))
#define islessequal(a, b) ((a) <= (b))
#define isgreater(a, b) ((a) > (b))
#define isgreaterequal(a, b) ((a) >= (b))
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
static inline float bits_float32(uint32_t u) { union { uint32_t u; float x; } v = {u}; return v.x; }
static inline double bits_float64(uint64_t u) { union { uint64_t u; double x; } v = {u}; return v.x; }""",
    C_TYPES,
    wraps=False,
    vector_loops=False,
    numpy_loops=False,
    runs_phases=False,
    checks_conversions=True,
)


def emit(network: Network, top: str) -> str:
    """Return the text of the kernel ``top``, whose arguments are `processes.arguments`.

    Raises
    ------
    Unsupported
        If there is an operation that C++ cannot do exactly as NumPy does.
    """
    return _Emitter(network, top).text()


def declared(array: Array, buffer: Buffer, written: bool, is_value: bool) -> str:
    """Return the declaration of a buffer as a parameter of a C function."""
    constant, star = "" if written else "const ", "" if is_value else "*"
    return f"{constant}{HLS.type(array.dtype)} {star}{buffer.pointer}"


class _Emitter(ProcessPrinter):
    def __init__(self, network: Network, top: str) -> None:
        super().__init__(network, HLS)
        self.top = top

    def text(self) -> str:
        stages = enumerate(self.network.stages)
        lines = [line for number, stage in stages for line in self.stage(number, stage)]
        given = arguments(self.network)
        names = ", ".join(self.declared(buffer, written) for buffer, written in given)
        lines.append(f'extern "C" void {self.top}({names}) {{')
        for buffer, _ in given:
            name = buffer.pointer
            if name not in self.values:
                lines.append(f"#pragma HLS INTERFACE m_axi port={name} offset=slave bundle=gmem_{name}")
            lines.append(f"#pragma HLS INTERFACE s_axilite port={name}")
        lines.append("#pragma HLS INTERFACE s_axilite port=return")
        for numbers, times in self.network.runs():
            lines += indented(repeated(times, [self.called(number) for number in numbers]))
        return "\n".join([HLS.head, *self.printer.helpers, "", *self.vector_types(), *lines, "}", ""])

    def declared(self, buffer: Buffer, written: bool) -> str:
        return declared(self.arrays[buffer.array], buffer, written, buffer.pointer in self.values)

    def called(self, number: int) -> str:
        """Return the call of the function of stage ``number``."""
        names = ", ".join(buffer.pointer for buffer, _ in self.used(self.network.stages[number]))
        return f"{self.top}_stage_{number}({names});"

    def used(self, stage: Stage) -> list[tuple[Buffer, bool]]:
        buffers: dict[Buffer, bool] = {}
        for process in stage.processes:
            _, read, written = process_arguments(process)
            buffers.update(dict.fromkeys(read, False) | dict.fromkeys(written, True))
        return list(buffers.items())

    def stage(self, number: int, stage: Stage) -> Iterator[str]:
        fifos = {fifo.name: fifo for fifo in stage.fifos}
        for process in stage.processes:
            streams, read, written = process_arguments(process)
            given = [f"hls::stream<{self.carried_by(fifos[name])}> &{name}" for name in streams]
            given += [self.declared(b, False) for b in read] + [self.declared(b, True) for b in written]
            yield from self.comment(process)
            yield f"static void {self.top}_{process.name}({', '.join(given)}) {{"
            yield from indented(self.body(process, fifos))
            yield from ("}", "")
        names = ", ".join(self.declared(buffer, written) for buffer, written in self.used(stage))
        yield f"static void {self.top}_stage_{number}({names}) {{"
        yield "#pragma HLS DATAFLOW"
        for fifo in stage.fifos:
            yield f'  hls::stream<{self.carried_by(fifo)}> {fifo.name}("{fifo.name}");'
            yield f"#pragma HLS STREAM variable={fifo.name} depth={max(fifo.depth, 2)}"
        for process in stage.processes:
            streams, read, written = process_arguments(process)
            names = ", ".join([*streams, *(buffer.pointer for buffer in (*read, *written))])
            yield f"  {self.top}_{process.name}({names});"
        yield from ("}", "")

    # ---- how things are written ---------------------------------------------------------------------
    def receive(self, fifo: str) -> str:
        return f"{fifo}.read()"

    def send(self, fifo: str, value: str) -> str:
        return f"{fifo}.write({value});"

    def pipelined(self, label: str, head: str, body: Iterable[str]) -> Iterator[str]:
        return self.plain(label, head, ["#pragma HLS PIPELINE II=1", *body])

    def folding(self, work: Work, head: str, body: Iterable[str]) -> Iterator[str]:
        lanes = self.lanes(work)
        dependence = f"#pragma HLS DEPENDENCE variable=acc type=inter direction=RAW distance={lanes} true"
        return self.pipelined(work.name, head, [*([dependence] if lanes > 1 else []), *body])

    def independent(self, head: str, body: Iterable[str], array: str) -> Iterator[str]:
        pragma = f"#pragma HLS DEPENDENCE variable={array} type=inter false"
        return self.pipelined("", head, [pragma, *body])

    def interleaved(self, head: str, body: Iterable[str], array: str, distance: int) -> Iterator[str]:
        pragma = f"#pragma HLS DEPENDENCE variable={array} type=inter direction=RAW distance={distance} true"
        return self.pipelined("", head, [pragma, *body])

    def plain(self, label: str, head: str, body: Iterable[str]) -> Iterator[str]:
        yield f"{label}: for ({head}) {{" if label else f"for ({head}) {{"
        yield from indented(body)
        yield "}"

    def unrolled(self, head: str, body: Iterable[str]) -> Iterator[str]:
        return self.plain("", head, ["#pragma HLS UNROLL", *body])

    def registers(self, fifo: Fifo, name: str, length: int) -> Iterator[str]:
        yield f"{self.carried_by(fifo)} {name}[{length}] = {{}};"
        yield f"#pragma HLS ARRAY_PARTITION variable={name} complete"

    shortest_delay = SHORTEST_DELAY
    copies_tables = True

    def delay(self, fifo: Fifo, name: str, length: int) -> Iterator[str]:
        yield f"{self.carried_by(fifo)} {name}[{length}];"
        yield f"#pragma HLS BIND_STORAGE variable={name} type=ram_s2p impl=bram"

    def delayed(self, name: str, length: int) -> Iterator[str]:
        yield f"#pragma HLS DEPENDENCE variable={name} type=inter direction=RAW distance={length} true"

    def table(self, kind: str, name: str, copies: int, length: int) -> Iterator[str]:
        yield f"{kind} {name}[{copies}][{length}];"
        yield f"#pragma HLS ARRAY_PARTITION variable={name} complete dim=1"

    def accumulators(self, kind: str, size: int, count: int, lanes: int) -> Iterator[str]:
        yield f"{kind} acc[{count}][{lanes}];"
        yield "#pragma HLS ARRAY_PARTITION variable=acc complete dim=2"
