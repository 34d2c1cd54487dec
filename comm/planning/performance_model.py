"""A model of a program's run time from counts of messages, bytes and operations.

A message of n bytes takes ``latency + n / bandwidth`` (Hockney, 1994); each further message in flight at the
same time adds a ``gap`` (as in LogGP, Alexandrov et al., 1995), and their bytes share the bandwidth.
Collective operations take the time of their algorithms in that model (Thakur, Rabenseifner and Gropp, 2005),
the faster of two where libraries choose by size.  Local work takes as long as its operations or the bytes
that it moves, whichever is longer (the roofline of Williams, Waterman and Patterson, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Collective", "Line", "Link", "Machine", "Phase", "collective", "fit", "predict"]


@dataclass(frozen=True)
class Line:
    """The time of a message of n <= `limit` bytes: ``latency + n / bandwidth`` seconds."""

    latency: float
    bandwidth: float
    limit: float = math.inf

    def time(self, nbytes: float) -> float:
        """Return the time of one message of `nbytes`, in seconds."""
        return self.latency + nbytes / self.bandwidth


@dataclass(frozen=True)
class Link:
    """The connection of two ranks: lines for ranges of message sizes, ascending; the last has no upper limit.

    Libraries send short messages eagerly and long ones after a handshake, so each range has its own line.
    """

    lines: tuple[Line, ...]
    gap: float = 0.0

    def line(self, nbytes: float) -> Line:
        """Return the line for messages of a size."""
        return next((line for line in self.lines if nbytes <= line.limit), self.lines[-1])

    def time(self, nbytes: float, messages: int = 1) -> float:
        """Return the seconds until `messages` sent at once, of `nbytes` in total, have arrived."""
        if messages < 1:
            return 0.0
        line = self.line(nbytes / messages)
        return line.time(nbytes) + (messages - 1) * self.gap


@dataclass(frozen=True)
class Machine:
    """The speed of a rank and its links.

    Parameters
    ----------
    name : str
    link : Link
        The link between two ranks, when all ranks send.
    flops : float
        Operations a second in a matrix product.
    memory : float
        Bytes a second to and from memory, when all ranks of a node do so.
    cache : float, optional
        Bytes a second for data in a cache; `memory` if it is 0.
    cached : float, optional
        The size of the cache in bytes.
    step : float, optional
        Seconds of overhead for each statement.
    source : str, optional
        The source of the figures.
    """

    name: str
    link: Link
    flops: float
    memory: float
    cache: float = 0.0
    cached: float = 0.0
    step: float = 0.0
    source: str = ""

    def work(self, flops: float, moved: float, held: float = math.inf) -> float:
        """Return the seconds of local work: `flops` operations and `moved` bytes, `held` of them
        different."""
        rate = self.cache if self.cache and held <= self.cached else self.memory
        return max(flops / self.flops, moved / rate)


@dataclass(frozen=True)
class Collective:
    """A collective operation among some ranks: its kind and the bytes of one rank's operand."""

    kind: str
    ranks: int
    nbytes: float


@dataclass(frozen=True)
class Phase:
    """The work and communication of a rank between two points at which it waits.

    Parameters
    ----------
    flops, moved, held : float
        Local work: operations, bytes read and written, and how many of these bytes are different.
    steps : int
        Statements run.
    messages, nbytes : int
        Number and total bytes of the messages sent, or of those received if that is more.
    collectives : tuple of Collective
    overlapped : bool
        Whether the messages travel while the work is done.
    times : float
        How often the phase is run; need not be a whole number.
    """

    flops: float = 0.0
    moved: float = 0.0
    held: float = math.inf
    steps: int = 1
    messages: int = 0
    nbytes: int = 0
    collectives: tuple[Collective, ...] = ()
    overlapped: bool = False
    times: float = 1


def predict(phases: Iterable[Phase], machine: Machine) -> float:
    """Return the seconds that some phases take, run one after the other.

    Parameters
    ----------
    phases : iterable of Phase
        The phases of the rank with the most work.
    machine : Machine

    Returns
    -------
    float
    """
    total = 0.0
    for phase in phases:
        work = machine.work(phase.flops, phase.moved, phase.held)
        travel = machine.link.time(phase.nbytes, phase.messages)
        once = max(work, travel) if phase.overlapped else work + travel
        once += sum(collective(each, machine.link) for each in phase.collectives)
        total += phase.times * (once + phase.steps * machine.step)
    return total


def collective(operation: Collective, link: Link) -> float:
    """Return the seconds of a collective operation.

    Parameters
    ----------
    operation : Collective
        Its kind is ``bcast``, ``reduce``, ``allreduce``, ``allgather`` (operand: what each rank gets) or
        ``alltoall`` (the operand: the elements that each rank sends).
    link : Link

    Returns
    -------
    float

    Raises
    ------
    ValueError
        When the kind is none of these.
    """
    ranks, nbytes = operation.ranks, operation.nbytes
    rounds = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    short, long = link.line(nbytes), link.line(nbytes / max(ranks, 1))
    part = nbytes * (ranks - 1) / ranks
    tree = rounds * short.time(nbytes)
    if operation.kind == "bcast":  # a binomial tree; or scattered, and gathered round a ring
        return min(tree, (rounds + ranks - 1) * long.latency + 2 * part / long.bandwidth)
    if operation.kind in ("reduce", "allreduce"):  # doubling; or halving, and doubling back
        return min(tree, 2 * rounds * long.latency + 2 * part / long.bandwidth)
    if operation.kind == "allgather":  # doubling
        return rounds * long.latency + part / long.bandwidth
    if operation.kind == "alltoall":  # pairwise
        return (ranks - 1) * long.latency + part / long.bandwidth
    raise ValueError(f"no model of {operation.kind!r}")


def fit(points: Sequence[tuple[float, float]], gap: float = 0.0) -> Link:
    """Return two lines fitted to measured messages, with the least relative errors.

    Parameters
    ----------
    points : sequence of (float, float)
        Bytes and seconds of single messages, four sizes at least.
    gap : float, optional
        Seconds that each further message in flight at the same time adds.

    Returns
    -------
    Link

    Raises
    ------
    ValueError
        When there are fewer than four points.
    """
    ordered = sorted(points)
    if len(ordered) < 4:
        raise ValueError(f"two lines need four points, and there are {len(ordered)}")
    fits: list[tuple[float, Link]] = []
    for cut in range(2, len(ordered) - 1):
        short, long = _line(ordered[:cut]), _line(ordered[cut:])
        link = Link((replace(short, limit=ordered[cut - 1][0]), long), gap)
        error = sum((link.time(n) / t - 1) ** 2 for n, t in ordered)
        fits.append((error, link))
    return min(fits, key=lambda pair: pair[0])[1]


def _line(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line with the least squares of relative errors, whose latency and slope are not negative."""
    n, t = np.array(points, dtype=float).T
    matrix = np.stack([1 / t, n / t], axis=1)
    (latency, each), *_ = np.linalg.lstsq(matrix, np.ones(len(t)), rcond=None)
    if each <= 0:  # as good as constant
        return Line(float(1 / np.mean(1 / t)), math.inf)
    if latency < 0:  # as good as proportional
        return Line(0.0, float(np.mean((n / t) ** 2) / np.mean(n / t)))
    return Line(float(latency), float(1 / each))
