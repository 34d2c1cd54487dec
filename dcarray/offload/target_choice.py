"""The choice between the processor and a device for a recording, from its work, rates of both, and copies.

Everything here only depends on arguments; `dcarray.offload.auto` is the caller, and
`dcarray.offload.calibration` measures the rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dcarray.ir.log_entries import declarations, statements
from dcarray.ir.records import record

from .op_costs import kernel_cost

__all__ = ["Choice", "Decision", "Moves", "Rates", "Speed", "Work", "work_of"]


class Work(NamedTuple):
    """The work of a recording, in quantities that are the same on the processor and on a device.

    Attributes
    ----------
    launches : int
        The least number of kernels and library calls.
    nbytes : int
        The bytes of the arrays, temporaries excluded, that are read or written.
    arithmetic : float
        Nanoseconds that a kernel's arithmetic takes on one core, by `dcarray.offload.op_costs`.
    multiplications : float
        The number of multiplications in matrix products.
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
        The recording's entries (`dcarray.ir.log_entries`).
    live : sequence of int
        The slots of new arrays to which the program still refers.
    scalars : mapping of str to array, optional
        The recording's scalar arguments by dtype, among which are the exponents of powers.
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
            arithmetic += domain * kernel_cost(entry.op, entry.loop, exponent)
        for slot in used:
            head = declared[slot].head
            if head in touched:
                item = np.dtype(declared[slot].char).itemsize
                touched[head] = max(touched[head], min(domain, sizes[slot]) * item)
    return Work(launches, sum(touched.values()), arithmetic, multiplications)


@record(frozen=True, slots=True)
class Speed:
    """The nanoseconds that the processor, or a device, takes for each kind of work.

    Attributes
    ----------
    launch : float
        For the launch of a kernel without elements, from Python.
    byte : float
        For each byte that is read or written.
    arithmetic : float
        For each nanosecond of arithmetic on one core.
    multiplication : float
        For each multiplication in a matrix product of doubles.
    """

    launch: float
    byte: float
    arithmetic: float
    multiplication: float

    def least(self, other: Speed) -> Speed:
        """Return the speed that has, for each kind of work, the shorter of two times."""
        return Speed(*[min(getattr(self, name), getattr(other, name)) for name in Speed.__slots__])

    def time(self, work: Work) -> float:
        """Return the estimated nanoseconds for some work; memory accesses and arithmetic overlap."""
        streamed = max(work.nbytes * self.byte, work.arithmetic * self.arithmetic)
        return work.launches * self.launch + streamed + work.multiplications * self.multiplication


@record(frozen=True, slots=True)
class Rates:
    """The speeds of the processor (``host``) and of a device, and the nanoseconds for each ``copy`` between
    them and for each byte of an ``upload`` to the device or a ``download`` to the host."""

    host: Speed
    device: Speed
    copy: float
    upload: float
    download: float

    def least(self, other: Rates) -> Rates:
        """Return the shorter of two times for each kind: other work of the machine only makes times
        longer."""
        times = [min(getattr(self, name), getattr(other, name)) for name in ("copy", "upload", "download")]
        return Rates(self.host.least(other.host), self.device.least(other.device), *times)

    def __str__(self) -> str:
        """Return a text: the time of a launch, GB/s of memory, Gflop/s of products, device / processor."""
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
        """Return the nanoseconds for copies of ``nbytes`` bytes in all, at ``rate`` nanoseconds per byte."""
        return copies * self.copy + nbytes * rate


class Moves(NamedTuple):
    """The number of copies, and their bytes in all, that a recording needs before it can run on either side.

    ``again``: copies to the host after each run on the device, of arrays of which the program has plain
    views.
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
        The reason in words, for `dcarray.explain`.
    expected : float
        The estimated nanoseconds on the processor, without copies; 0 if they were not estimated.
    """

    on_device: bool
    reason: str
    expected: float = 0.0


class Choice:
    """The choice of the side, processor or device, for a recording that is repeated.

    It runs on the side that is faster with the copies included.  If the other side would be faster without
    the copies, each run loses time.  When the losses add up to the time of the copies, the recording moves to
    the other side.  So all runs together take at most about twice the least possible time, although their
    number is not known beforehand (the ski rental problem).

    Attributes
    ----------
    lost : float
        The nanoseconds that were lost since the elements were last moved.
    refused : str
        Why the device cannot run the recording; empty if it can, as far as is known.
    """

    __slots__ = ("lost", "refused")

    def __init__(self) -> None:
        self.lost = 0.0
        self.refused = ""

    def decide(self, work: Work, moves: Moves, rates: Rates, device: str, tried: bool = True) -> Decision:
        """Return the decision for a run.  ``device`` is the device's name; with ``tried=False`` the run's
        loss is not counted."""
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
