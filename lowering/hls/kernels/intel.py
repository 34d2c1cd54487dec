"""The printer of process networks in OpenCL C for Intel's FPGA SDK: each process is a kernel of one
work-item, each FIFO a channel.

A process that accesses no memory is an autorun kernel: it starts with the board, and again whenever it has
ended.  It waits for elements in its channels, which are all empty after a stage; so the host starts only the
kernels that read or write memory, stage by stage (`kernels`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dcarray.ir.records import record
from dcarray.lowering.c_family.dialect import C_TYPES, Dialect

from ..network.arguments import process_arguments
from ..network.nodes import Buffer, Fifo, Network, Process, Work
from .blocks import indented
from .printer import ProcessPrinter

_HEAD = """#pragma OPENCL EXTENSION cl_intel_channels : enable
{fp64}#pragma OPENCL FP_CONTRACT OFF

typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef uchar uint8_t; typedef ushort uint16_t; typedef uint uint32_t; typedef ulong uint64_t;
#define bits_float32(bits) as_float((uint)(bits))
#define bits_float64(bits) as_double((ulong)(bits))
#define __builtin_popcountll(x) popcount((ulong)(x))
#define feraiseexcept(flags)  // there are no floating-point flags"""

OPENCL = Dialect(
    "Intel FPGA", _HEAD, C_TYPES, int64="{}L", uint64="{}UL", int64_min="LONG_MIN", float32_suffix="",
    function="static inline ", wraps=False, vector_loops=False, numpy_loops=False, runs_phases=False,
    checks_conversions=True,
)  # fmt: skip


@record(frozen=True, slots=True)
class Kernel:
    """A kernel that the host starts, and the buffers that are its arguments, in order."""

    name: str
    arguments: tuple[Buffer, ...]


def kernels(network: Network, top: str) -> tuple[tuple[Kernel, ...], ...]:
    """Return the kernels that the host starts, stage by stage.

    The kernels of a stage run at the same time, each in its own command queue, since they wait for each
    other. A stage begins when all kernels of the previous one have ended.  Autorun kernels are not included.
    """
    return tuple(
        tuple(
            Kernel(kernel_name(top, process), _buffers(process))
            for process in stage.processes
            if not runs_by_itself(process)
        )
        for stage in network.stages
    )


def runs_by_itself(process: Process) -> bool:
    """Whether the kernel of a process is an autorun kernel, because it accesses no memory."""
    return not _buffers(process)


def kernel_name(top: str, process: Process) -> str:
    """Return the name of the kernel of a process."""
    return f"{top}_{process.name}"


def channel(top: str, fifo: str) -> str:
    """Return the name of the channel of a FIFO."""
    return f"{top}_{fifo}"


def _buffers(process: Process) -> tuple[Buffer, ...]:
    _, read, written = process_arguments(process)
    return (*read, *written)


def emit(network: Network, top: str, *, native_accumulation: bool = False) -> str:
    """Return the text of the kernels of a network.

    Parameters
    ----------
    network : Network
    top : str
        The prefix of the names of kernels and channels.
    native_accumulation : bool, optional
        Whether the device can add a float32 to a sum in each cycle, as Arria 10 and Stratix 10 can: then a
        sum of all elements in float32 has one accumulator.  Otherwise, and for float64, it has `folds.LANES`.

    Raises
    ------
    Unsupported
        If there is an operation that OpenCL C cannot do exactly as NumPy does.
    """
    return _Emitter(network, top, native_accumulation).text()


class _Emitter(ProcessPrinter):
    def __init__(self, network: Network, top: str, native_accumulation: bool) -> None:
        super().__init__(network, OPENCL)
        self.top, self.native_accumulation = top, native_accumulation

    def text(self) -> str:
        lines: list[str] = []
        for number, stage in enumerate(self.network.stages):
            fifos = {fifo.name: fifo for fifo in stage.fifos}
            lines += [f"// stage {number}", *map(self.channel, stage.fifos), ""]
            for process in stage.processes:
                lines += [*self.kernel(process, fifos), ""]
        body = "\n".join([*self.printer.helpers, "", *self.vector_types(), *lines])
        fp64 = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if "double" in body else ""
        return OPENCL.head.replace("{fp64}", fp64) + "\n" + body

    def channel(self, fifo: Fifo) -> str:
        name = channel(self.top, fifo.name)
        return f"channel {self.carried_by(fifo)} {name} __attribute__((depth({fifo.depth})));"

    def kernel(self, process: Process, fifos: dict[str, Fifo]) -> Iterator[str]:
        _, read, written = process_arguments(process)
        given = [self.declared(buffer, "const ") for buffer in read]
        given += [self.declared(buffer, "") for buffer in written]
        yield from self.comment(process)
        yield "__attribute__((max_global_work_dim(0)))"
        if runs_by_itself(process):
            yield "__attribute__((autorun))"
        yield f"__kernel void {kernel_name(self.top, process)}({', '.join(given) or 'void'}) {{"
        yield from indented(self.body(process, fifos))
        yield "}"

    def declared(self, buffer: Buffer, constant: str) -> str:
        kind = self.type(self.arrays[buffer.array].dtype)
        if buffer.pointer in self.values:
            return f"const {kind} {buffer.pointer}"
        return f"__global {constant}{kind} *restrict {buffer.pointer}"

    # ---- how things are written -----------------------------------------------------------------------
    def receive(self, fifo: str) -> str:
        return f"read_channel_intel({channel(self.top, fifo)})"

    def send(self, fifo: str, value: str) -> str:
        return f"write_channel_intel({channel(self.top, fifo)}, {value});"

    def pipelined(self, label: str, head: str, body: Iterable[str]) -> Iterator[str]:
        return self.plain(label, head, body)  # loops of single work-items are pipelined

    def independent(self, head: str, body: Iterable[str], array: str) -> Iterator[str]:
        yield f"#pragma ivdep array({array})"
        yield from self.pipelined("", head, body)

    def interleaved(self, head: str, body: Iterable[str], array: str, distance: int) -> Iterator[str]:
        yield f"#pragma ivdep array({array}) safelen({distance})"
        yield from self.pipelined("", head, body)

    def plain(self, label: str, head: str, body: Iterable[str]) -> Iterator[str]:
        yield f"for ({head}) {{"
        yield from indented(body)
        yield "}"

    def unrolled(self, head: str, body: Iterable[str]) -> Iterator[str]:
        yield "#pragma unroll"
        yield from self.plain("", head, body)

    def registers(self, fifo: Fifo, name: str, length: int) -> Iterator[str]:
        kind = self.carried_by(fifo)
        if length == 1:
            yield f"{kind} {name}[1] = {{{'0' if fifo.width == 1 else '{{0}}'}}};"
            return
        yield f"{kind} {name}[{length}];"
        cleared = [f"{name}[j] = 0;"]
        if fifo.width > 1:
            cleared = [*self.unrolled(f"int k = 0; k < {fifo.width}; k++", [f"{name}[j].v[k] = 0;"])]
        yield from self.unrolled(f"int j = 0; j < {length}; j++", cleared)

    def table(self, kind: str, name: str, copies: int, length: int) -> Iterator[str]:
        yield f"{kind} {name}[{copies}][{length}];"  # the compiler replicates what is read several times

    def accumulators(self, kind: str, size: int, count: int, lanes: int) -> Iterator[str]:
        banks = f"__attribute__((numbanks({lanes}), bankwidth({max(size, 4)}))) " if lanes > 1 else ""
        yield f"{kind} {banks}acc[{count}][{lanes}];"

    # ---- folds ------------------------------------------------------------------------------------------
    def lanes(self, work: Work) -> int:
        return 1 if self.natively(work) else super().lanes(work)

    def natively(self, work: Work) -> bool:
        """Whether a fold uses the device's own accumulator: for a sum of all float32 elements."""
        dtype = self.arrays[work.stmt.target.array].dtype
        is_sum = dtype == np.float32 and work.stmt.combine == "add"
        return self.native_accumulation and is_sum and work.results == 1

    def rotates(self, work: Work) -> bool:
        """Whether the accumulators of a fold form a shift register, because there is only one result."""
        return self.lanes(work) > 1 and work.results == 1

    def begin(self, work: Work) -> Iterator[str]:
        kind, lanes = self.result_type(work), self.lanes(work)
        if self.natively(work):
            yield f"{kind} acc = 0.0f;  // one addition a cycle: the device's own accumulator"
        elif self.rotates(work):
            yield f"// the sum is of {lanes} parts, to which elements are added in turn: not NumPy's order"
            yield f"{kind} acc[{lanes + 1}];"
            yield from self.unrolled(f"int j = 0; j <= {lanes}; j++", [f"acc[j] = {self.neutral(work)};"])
        else:
            yield from super().begin(work)

    def folding(self, work: Work, head: str, body: Iterable[str]) -> Iterator[str]:
        kind, lanes = self.result_type(work), self.lanes(work)
        if self.natively(work):
            lines = [f"{kind} next = 0.0f;", *body, "acc += next;"]
            return self.pipelined("", head, lines)
        if self.rotates(work):  # whether or not something is added: a shift register moves on always
            moved = self.unrolled(f"int j = 0; j < {lanes}; j++", ["acc[j] = acc[j + 1];"])
            lines = [f"{kind} next = acc[0];", *body, f"acc[{lanes}] = next;", *moved]
            return self.pipelined("", head, lines)
        return self.apart(work, self.pipelined("", head, body))

    def apart(self, work: Work, loop: Iterable[str]) -> Iterator[str]:
        """Yield a loop with a pragma for the iterations between two uses of one accumulator."""
        distance = self.carried(work)
        if distance is None:
            yield "#pragma ivdep array(acc)"
        elif distance > 1:
            yield f"#pragma ivdep array(acc) safelen({distance})"
        yield from loop

    def deliver(self, work: Work, result: str) -> Iterator[str]:
        if work.stmt.combine is not None and self.natively(work):
            yield f"next = {result};"
        elif work.stmt.combine is not None and self.rotates(work):
            yield f"next = {self.combined(work, 'next', result)};"
        else:
            yield from super().deliver(work, result)

    def finish(self, work: Work) -> Iterator[str]:
        natively = self.natively(work)
        if not (natively or self.rotates(work)):
            yield from super().finish(work)
            return
        for axis in range(len(work.stmt.target.shape)):
            yield f"const int64_t x{axis} = 0;"
        result, lines = self.initial(work)
        yield from lines
        yield f"{self.result_type(work)} r = {result};"
        if natively:
            yield f"r = {self.combined(work, 'r', 'acc')};"
        else:
            joined = [f"r = {self.combined(work, 'r', 'acc[j]')};"]
            yield from self.unrolled(f"int j = 0; j < {self.lanes(work)}; j++", joined)
        yield self.send(work.out, "r")
