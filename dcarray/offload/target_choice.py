"""The choice between the processor and a device for a recording: its work, the rates of both, the copies.

Everything here is a function of its arguments; `dcarray.offload.auto` asks, `dcarray.offload.calibration`
measures the rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dcarray.ir.log_entries import declarations, statements
from dcarray.ir.records import record
from dcarray.tiering import op_costs

__all__ = ["Choice", "Decision", "Moves", "Rates", "Speed", "Work", "work_of"]


class Work(NamedTuple):
    """The work of a recording, as far as it is the same on the processor and on a device.

    Attributes
    ----------
    launches : int
        Kernels and library calls, at least.
    nbytes : int
        Bytes of arrays read or written that are not temporary.
    arithmetic : float
        Nanoseconds that a kernel's arithmetic takes on one core, by `dcarray.tiering.op_costs`.
    multiplications : float
        Multiplications in matrix products.
    """

    launches: int
    nbytes: int
    arithmetic: float
    multiplications: float


def work_of(
    log: Sequence[tuple[Any, ...]], live: Sequence[int], scalars: Mapping[str, Any] | None = None
) -> Work:
    """Return the work of a recording.

    Parameters
    ----------
    log : sequence of tuple
        Its entries (`dcarray.ir.log_entries`).
    live : sequence of int
        The slots of new arrays that are still held.
    scalars : mapping of str to array, optional
        Its scalar arguments by dtype, from which exponents are known.
    """
    declared = declarations(log)
    sizes = [math.prod(entry.shape) for entry in declared]
    kept = {k for k, entry in enumerate(declared) if not entry.is_new}.union(live)
    touched = dict.fromkeys((declared[k].head for k in kept), 0)
    launches, arithmetic, multiplications = 1, 0.0, 0.0
    for entry in statements(log):
        operands = entry.arrays
        used = [*entry.outs, *(slot for slot, _, _ in operands)]
        if entry.kind == "call":
            launches += 1
            domain = max(sizes[slot] for slot in used)
            if entry.op.partition(".")[0] == "blas" and operands:
                slot, _, given = operands[0]
                shape = declared[slot].shape if given is None else given
                multiplications += float(sizes[entry.out]) * (shape[-1] if shape else 1)
        else:
            domain = math.prod(entry.shape)
            launches += entry.kind == "fold"
            number = entry.args[-1] if type(entry.args[-1]) is int else None
            exponent = None
            if entry.op == "power" and entry.loop[1] == "d" and number is not None and scalars is not None:
                exponent = float(scalars["d"][number])
            arithmetic += domain * op_costs.element_costs(entry.op, entry.loop, exponent)[1]
        for slot in used:
            head = declared[slot].head
            if head in touched:
                item = np.dtype(declared[slot].char).itemsize
                touched[head] = max(touched[head], min(domain, sizes[slot]) * item)
    return Work(launches, sum(touched.values()), arithmetic, multiplications)


@record(frozen=True, slots=True)
class Speed:
    """The nanoseconds of each kind of work.

    Attributes
    ----------
    launch : float
        A kernel without elements, from Python.
    byte : float
        A byte that is read or written.
    arithmetic : float
        A nanosecond of one core's arithmetic.
    multiplication : float
        A multiplication of a matrix product of doubles.
    """

    launch: float
    byte: float
    arithmetic: float
    multiplication: float

    def least(self, other: Speed) -> Speed:
        """Return the shorter time of each."""
        return Speed(*[min(getattr(self, name), getattr(other, name)) for name in Speed.__slots__])

    def time(self, work: Work) -> float:
        """Return the nanoseconds for some work: memory and arithmetic overlap."""
        streamed = max(work.nbytes * self.byte, work.arithmetic * self.arithmetic)
        return work.launches * self.launch + streamed + work.multiplications * self.multiplication


@record(frozen=True, slots=True)
class Rates:
    """The speeds of the processor and of a device, and nanoseconds for a copy and for each of its bytes."""

    host: Speed
    device: Speed
    copy: float
    upload: float
    download: float

    def least(self, other: Rates) -> Rates:
        """Return the shorter time of each: what else the machine does can only make one longer."""
        times = [min(getattr(self, name), getattr(other, name)) for name in ("copy", "upload", "download")]
        return Rates(self.host.least(other.host), self.device.least(other.device), *times)

    def __str__(self) -> str:
        """Return bandwidths in GB/s, the time of a launch, and products in Gflop/s, device / processor."""
        pairs = [
            f"{name} {there:.3g} / {here:.3g} {unit}"
            for name, there, here, unit in (
                ("launch", self.device.launch / 1e3, self.host.launch / 1e3, "us"),
                ("memory", 1 / (self.device.byte or math.inf), 1 / (self.host.byte or math.inf), "GB/s"),
                (
                    "products",
                    2 / (self.device.multiplication or math.inf),
                    2 / (self.host.multiplication or math.inf),
                    "Gflop/s",
                ),
            )
        ]
        up, down = 1 / (self.upload or math.inf), 1 / (self.download or math.inf)
        return ", ".join([*pairs, f"copies {up:.3g} up, {down:.3g} GB/s down"])

    def moving(self, copies: int, nbytes: int, rate: float) -> float:
        """Return the nanoseconds for some copies of ``nbytes`` in all."""
        return copies * self.copy + nbytes * rate


class Moves(NamedTuple):
    """The copies, and their bytes, that a recording needs before it can run on one side.

    ``again`` are those that each run on the device needs, since the host looks on.
    """

    to_device: tuple[int, int] = (0, 0)
    to_host: tuple[int, int] = (0, 0)
    again: tuple[int, int] = (0, 0)


class Decision(NamedTuple):
    """The choice of where a recording runs, and its reason.

    Attributes
    ----------
    on_device : bool
        Whether it runs on the device.
    reason : str
        For `dcarray.explain`.
    expected : float
        Nanoseconds that it is thought to take on the processor, without copies; 0 if that was not asked.
    """

    on_device: bool
    reason: str
    expected: float = 0.0


class Choice:
    """The choice for a recording that comes again and again.

    It runs where it is done sooner, copies included.  Where it would be done sooner on the other side if only
    the elements were there, what is lost in each run adds up, and they are moved once the sum has reached
    what moving takes: so all runs together take at most about twice as long as if it had been known from the
    beginning how many there are (the rule of renting or buying skis).

    Attributes
    ----------
    lost : float
        Nanoseconds lost since the elements were last moved.
    refused : str
        Why the device cannot run it; empty if it can, as far as is known.
    """

    __slots__ = ("lost", "refused")

    def __init__(self) -> None:
        self.lost = 0.0
        self.refused = ""

    def decide(self, work: Work, moves: Moves, rates: Rates, device: str, tried: bool = True) -> Decision:
        """Return where a run is done; with ``tried=False`` nothing is counted."""
        host = rates.host.time(work)
        there = rates.device.time(work) + rates.moving(*moves.again, rates.download)
        up = rates.moving(*moves.to_device, rates.upload)
        down = rates.moving(*moves.to_host, rates.download)
        figures = (
            f"{device} {_milliseconds(there)} and {_milliseconds(up)} for copies, "
            f"cpu {_milliseconds(host)} and {_milliseconds(down)}"
        )
        if self.refused:
            return Decision(False, self.refused)
        now, settled = there + up < host + down, there < host
        lost = 0.0
        if now != settled:
            lost = self.lost + abs(host - there)
            if lost >= (up if settled else down):
                now, lost = settled, 0.0
                figures += "; what earlier runs have lost pays for the copies"
        if tried:
            self.lost = lost
        return Decision(now, figures, host)


def _milliseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3g} ms"
