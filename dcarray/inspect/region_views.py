"""Views: a region from its recording to the kernels of its plan, as an explanation shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from dcarray.core.config import current
from dcarray.ir.analysis.traffic import Traffic, fused_traffic, total_fused_traffic, unfused_bytes

from .drawing import Panel, panel, shape_text, size_text
from .formula import domain_of, statement_lines
from .launch_graphs import LaunchGraphView, view_graphs

if TYPE_CHECKING:
    from dcarray.comm.planning.rank_program.steps import Program
    from dcarray.ir.nodes import Region
    from dcarray.ir.passes import Note
    from dcarray.lowering.kernel.nodes import Kernel
    from dcarray.lowering.program.executable import Part, Plan
    from dcarray.plans.requests import Request


@dataclass(frozen=True)
class KernelView:
    """A statement of the final region, as the plan runs it.

    Attributes
    ----------
    number : str
        The number of the statement in the final region; ``2.1`` for the first statement inside of the second,
        where that is no kernel itself.
    kind : {"kernel", "call", "interpreter", "driver", "check"}
        What runs it: a compiled kernel, a library, the interpreter, or, for a loop or branch around kernels,
        the plan's driver.  A check is a kernel that runs before the others and finds whether the inputs are
        so small that no floating-point exception can be raised.
    shape : tuple or None
        Its iteration domain; None for loops and branches.
    formula : tuple of str
        The statement in infix notation.
    where : str
        The user's line that it comes from.
    traffic : Traffic
        Bytes and operations.
    listing : str
        The kernel as C; where it is none, the library or the reason.
    kernel : Kernel or None
        The kernel itself.
    """

    number: str
    kind: str
    shape: tuple[Any, ...] | None
    formula: tuple[str, ...]
    where: str
    traffic: Traffic
    listing: str
    kernel: Kernel | None = None

    @property
    def title(self) -> str:
        """The heading of the kernel: its number, bytes and operations."""
        cost = self.traffic
        parts = [f"{self.kind} {self.number}", *filter(None, (shape_text(self.shape),))]
        parts.append(f"reads {size_text(cost.read)}, writes {size_text(cost.written)}")
        parts.append(f"{cost.operations:,} operations")
        if cost.bytes:
            parts.append(f"{cost.operations / cost.bytes:.2g} per byte")
        return "  ·  ".join([*parts, *filter(None, (self.where,))])

    @cached_property
    def llvm(self) -> str:
        """The optimised LLVM text."""
        return self._compiled("optimised")

    @cached_property
    def asm(self) -> str:
        """The assembly for this processor."""
        return self._compiled("assembly")

    def _compiled(self, form: str) -> str:
        if self.kernel is None:
            return self.listing
        from dcarray.lowering.cpu.llvm.object_code import engine
        from dcarray.lowering.targets import get

        return str(getattr(engine, form)(get("cpu").emit(self.kernel)))


@dataclass(frozen=True)
class Stage:
    """A step of planning that changed the region: its name, the region after it, and its notes."""

    name: str
    region: Region
    notes: tuple[Note, ...]


class CircuitView(Protocol):
    """A region as hardware: its text, its description in lines, and its drawing with a legend."""

    @property
    def text(self) -> str: ...
    @property
    def legend(self) -> Mapping[str, str]: ...
    def lines(self) -> list[str]: ...
    def panels(self) -> list[Panel]: ...


@dataclass(frozen=True)
class RegionView:
    """A region from the recording to the kernels that run it.

    Attributes
    ----------
    region, final : Region
        As recorded, and as the plan runs it.
    stages : tuple of Stage
        The steps of planning between them.
    refused : tuple of Note
        What passes refused to do, with the reasons.
    kernels : tuple of KernelView
    lines : mapping
        ``Stmt.loc`` to the user's line.
    names : mapping
        Array name to the name shown for it.
    program : Program or None
        This rank's program, where several ranks run the region together; its local steps follow as regions.
    step : int or None
        The number of the local step that this region is.
    remark : str
        Why the kernels do not run; empty if they do.
    graphs : tuple of LaunchGraphView
        The graphs by which the device gets its launches; empty if it uses none.
    circuit : CircuitView or None
        The region as a streaming circuit; None unless one was requested.
    """

    region: Region
    final: Region
    stages: tuple[Stage, ...]
    refused: tuple[Note, ...]
    kernels: tuple[KernelView, ...]
    lines: Mapping[Any, str]
    names: Mapping[str, str]
    program: Program | None = None
    step: int | None = None
    remark: str = ""
    graphs: tuple[LaunchGraphView, ...] = ()
    circuit: CircuitView | None = None

    @property
    def moved(self) -> int:
        """Bytes that the kernels move."""
        return total_fused_traffic(self.final.body, self.final).bytes

    @property
    def moved_unfused(self) -> int:
        """Bytes that one operation at a time moves."""
        return unfused_bytes(self.region)

    def summary(self) -> str:
        """Return the counts of statements, kernels and bytes in one line."""
        n = len(self.region.body)
        if self.program is not None:
            counts = self.program.counts
            text = f"{_count(n, 'statement')} recorded; this is rank {self.program.rank}'s part"
            sent = f"sends {_count(counts.messages_sent, 'message')}, {counts.bytes_sent:,} bytes"
            got = f"receives {_count(counts.messages_received, 'message')}, {counts.bytes_received:,} bytes"
            return f"{text}, which {sent}, and {got}"
        recorded = " recorded" if self.step is None else " on this rank's blocks"
        text = f"{_count(n, 'statement')}{recorded}, {self._steps()} run"
        before, after = self.moved_unfused, self.moved
        text += f"; {size_text(after)} moved"
        return text + (f" instead of {size_text(before)}" if before > after else "")

    def _steps(self) -> str:
        """Return the numbers of kernels, library calls and interpreted statements, as text."""
        kinds = [kernel.kind for kernel in self.kernels]
        nouns = {"kernel": "kernel", "call": "library call", "interpreter": "interpreted statement"}
        counts = [_count(kinds.count(kind), noun) for kind, noun in nouns.items() if kind in kinds]
        return " and ".join(counts) or "no kernel"

    def panels(self) -> list[Panel]:
        """Return the graphs of the drawing: data as recorded and as it runs, and launches."""
        n = _count(len(self.region.body), "statement")
        before = f"{n}, {size_text(self.moved_unfused)} moved if run one by one"
        after = f"{self._steps()}, {size_text(self.moved)} moved"
        recorded = panel(self.region, "As recorded", before, self.lines, "statement", self.names)
        if self.circuit is not None:
            return [recorded, *self.circuit.panels()]
        return [
            recorded,
            panel(self.final, "As it runs", after, self.lines, "kernel", self.names),
            *(graph.panel() for graph in self.graphs),
        ]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def view_request(
    request: Request,
    lines: Mapping[Any, str] | None = None,
    names: Mapping[str, str] | None = None,
    symbols: tuple[int, ...] = (),
    step: int | None = None,
    remark: str = "",
) -> RegionView:
    """Return the view of what is planned for a request; the plan is made once more, with an observer.

    Parameters
    ----------
    request : Request
        The request that the plan is made for.
    lines, names, step, remark
        As the attributes of `RegionView`.
    symbols : tuple of int
        The values of the plan's symbols; by default those that it was planned with.

    Returns
    -------
    RegionView
    """
    from dcarray.ir.passes import Log
    from dcarray.plans.requests import make_plan

    log, stages = Log(), list[Stage]()

    def on_change(name: str, after: Region, done: Sequence[Note]) -> None:
        stages.append(Stage(name, after, tuple(done)))

    plan = make_plan(request, lambda *_: None, current().debug, log, on_change).plan
    if plan.region is not stages[-1].region:
        on_change("storage of temporaries", plan.region, ())
    recorded = stages.pop(0)
    region, final = (_sized(one, symbols) for one in (recorded.region, plan.region))
    refused = tuple(note for note in log.notes if note.kind == "refused")
    lines, names = lines or {}, dict(names or {})
    for array in final.arrays:
        # what was added to see memory in another shape, or to copy it, is called like it
        prefix, _, of = ("", "", array.base) if array.base is not None else array.name.partition("_")
        if of in names and array.name not in names:
            names[array.name] = f"{prefix}_{names[of]}" if prefix else names[of]
    checks = () if plan.range_check is None else _kernels(plan.range_check.plan, lines, names, request.target)
    checks = tuple([replace(one, kind="check") for one in checks])
    kernels = (*checks, *_kernels(replace(plan, region=final), lines, names, request.target))
    graphs = view_graphs(plan, request.target, names)
    return RegionView(
        region, final, tuple(stages), refused, kernels, lines, names, None, step, remark, graphs
    )


def _sized(region: Region, symbols: tuple[int, ...]) -> Region:
    """Return the region with these values as hints of its symbols."""
    if not symbols:
        return region
    pairs = zip(region.symbols, symbols, strict=True)
    return replace(region, symbols=tuple([replace(symbol, hint=value) for symbol, value in pairs]))


def _kernels(
    plan: Plan, lines: Mapping[Any, str], names: Mapping[str, str], target: str
) -> tuple[KernelView, ...]:
    numbered = zip(_numbers(plan.parts), plan.parts, strict=True)
    return tuple([_kernel(number, part, plan, lines, names, target) for number, part in numbered])


def _numbers(parts: tuple[Part, ...]) -> list[str]:
    """The numbers of the parts of a plan: of their statements, and inside of these one after the other."""
    numbers: list[str] = []
    inside = 0
    for k, part in enumerate(parts):
        first = k == 0 or parts[k - 1].position != part.position
        inside = 0 if first else inside + 1
        numbers.append(f"{part.position + 1}" + (f".{inside}" if inside else ""))
    return numbers


def view_program(
    region: Region, program: Program, lines: Mapping[Any, str], names: Mapping[str, str]
) -> RegionView:
    """View a region that several ranks run together, as one of them does."""
    return RegionView(region, region, (), (), (), lines, names, program)


def _kernel(
    number: str, part: Part, plan: Plan, lines: Mapping[Any, str], names: Mapping[str, str], target: str
) -> KernelView:
    from dcarray.ir.nodes import Call
    from dcarray.lowering.c_family.emit import emit
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.kernel.text import kernel_text
    from dcarray.lowering.libraries import dispatch
    from dcarray.lowering.program.nodes import Copy, HostCall, Launch
    from dcarray.lowering.targets import get

    kernel = None
    step = part.step if isinstance(part.step, str) else plan.steps[part.step]
    if isinstance(step, str):
        kind, listing = "driver", f"no single kernel: {step}; its parts follow"
    elif isinstance(step, Launch):
        kind, kernel = "kernel", step.kernel
        try:
            listing = _body(emit(kernel, {b: names.get(array, array) for b, array in step.names.items()}))
        except Unsupported:  # plain C cannot say it
            listing = kernel_text(kernel)
    elif isinstance(step, HostCall):
        kind, listing = "interpreter", f"no kernel: {step.reason}"
    elif isinstance(step, Copy):
        kind, listing = "call", "copy, by NumPy"
    else:
        assert isinstance(part.stmt, Call)
        kind = "call"
        libraries, threads = get(target).libraries, current().threads
        listing = f"library call {dispatch.describe_call(part.stmt, plan.region, threads, libraries)}"
    formula = tuple(statement_lines(part.whole, names))
    where = lines.get(part.stmt.loc, "")
    cost = fused_traffic(part.whole, plan.region)
    return KernelView(number, kind, domain_of(part.stmt), formula, where, cost, listing, kernel)


def _body(listing: str) -> str:
    """Return a C listing without the parts of every listing: the prelude and the entry point."""
    body, _, _ = listing.partition("/* All phases")
    kept = body.splitlines()
    while (
        kept and kept[0].startswith(("#include", "typedef", "static inline", "")) and "phase" not in kept[0]
    ):
        kept.pop(0)
    return "\n".join(kept).rstrip()
