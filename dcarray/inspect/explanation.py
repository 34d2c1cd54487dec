"""An explanation: what was recorded, what the passes made of it and why, and the kernels that run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcarray.core.config import current
from dcarray.ir.analysis.traffic import Traffic, fused, fused_all, unfused
from dcarray.ir.nodes import Branch, Call, Loop, Region, Stmt, While

from .drawing import Panel, draw, panel, shape_text, size_text
from .formula import domain_of, statement_lines

if TYPE_CHECKING:
    from dcarray.comm.planning.program.steps import Note as Reason
    from dcarray.comm.planning.program.steps import Program
    from dcarray.ir.passes import Note
    from dcarray.lowering.kernel.nodes import Kernel

__all__ = ["Explanation", "KernelView", "RegionView", "Stage", "view_program", "view_region"]

_RULE = "-" * 100


@dataclass(frozen=True)
class KernelView:
    """One step of the final region.

    Attributes
    ----------
    kind : str
        ``kernel``, ``call`` (a library) or ``interpreter``.
    formula : tuple of str
        What it computes.
    where : str
        The user's line that it comes from.
    traffic : Traffic
        Bytes and operations.
    listing : str
        The kernel as C; why there is none, where it runs otherwise.
    """

    number: int
    kind: str
    shape: tuple[Any, ...]
    formula: tuple[str, ...]
    where: str
    traffic: Traffic
    listing: str
    kernel: Kernel | None = None

    @property
    def title(self) -> str:
        """One line of figures."""
        cost = self.traffic
        parts = [f"{self.kind} {self.number}", shape_text(self.shape)]
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
        from dcarray.lowering.errors import Unsupported
        from dcarray.lowering.target import get

        try:
            return str(getattr(engine, form)(get("cpu").emit(self.kernel)))
        except Unsupported as reason:
            return f"runs through the interpreter: {reason}"


@dataclass(frozen=True)
class Stage:
    """One run of a pass that changed the region: what it did, and the region after it."""

    name: str
    region: Region
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class RegionView:
    """One region from the recording to its kernels."""

    region: Region
    final: Region
    stages: tuple[Stage, ...]
    refused: tuple[Note, ...]
    kernels: tuple[KernelView, ...]
    lines: Mapping[Any, str]
    names: Mapping[str, str]
    # Of this rank, where several run it together: its local steps follow as regions.
    program: Program | None = None
    step: int | None = None

    @property
    def moved(self) -> int:
        """Bytes that the kernels move."""
        return fused_all(self.final.body, self.final).bytes

    @property
    def moved_unfused(self) -> int:
        """Bytes that one operation at a time moves."""
        return unfused(self.region)

    def summary(self) -> str:
        """One line."""
        n, steps = len(self.region.body), len(self.final.body)
        if self.program is not None:
            counts = self.program.counts
            text = f"{_count(n, 'statement')} recorded; this is rank {self.program.rank}'s part"
            sent = f"sends {_count(counts.messages_sent, 'message')}, {counts.bytes_sent:,} bytes"
            got = f"receives {_count(counts.messages_received, 'message')}, {counts.bytes_received:,} bytes"
            return f"{text}, which {sent}, and {got}"
        recorded = " recorded" if self.step is None else " on this rank's blocks"
        text = f"{_count(n, 'statement')}{recorded}, {_count(steps, 'kernel')} run"
        before, after = self.moved_unfused, self.moved
        text += f"; {size_text(after)} moved"
        return text + (f" instead of {size_text(before)}" if before > after else "")

    def panels(self) -> list[Panel]:
        """The two graphs of the drawing."""
        n = _count(len(self.region.body), "statement")
        before = f"{n}, {size_text(self.moved_unfused)} moved if run one by one"
        after = f"{_count(len(self.final.body), 'kernel')}, {size_text(self.moved)} moved"
        return [
            panel(self.region, "As recorded", before, self.lines, "statement", self.names),
            panel(self.final, "As it runs", after, self.lines, "kernel", self.names),
        ]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


@dataclass(frozen=True)
class Explanation:
    """What will happen when a value is needed: ``print`` it, show it in a notebook, or ``save`` it.

    Attributes
    ----------
    regions : tuple of RegionView
        Usually one; a function that needed values on its way has several.
    """

    regions: tuple[RegionView, ...]
    with_llvm: bool = False
    with_asm: bool = False
    remark: str = field(default="")

    @property
    def kernels(self) -> tuple[KernelView, ...]:
        """All kernels in their order."""
        return tuple(kernel for region in self.regions for kernel in region.kernels)

    @property
    def llvm(self) -> str:
        """The optimised LLVM text of all kernels."""
        return "\n".join(f"; {k.title}\n{k.llvm}" for k in self.kernels)

    @property
    def asm(self) -> str:
        """The assembly of all kernels."""
        return "\n".join(f"# {k.title}\n{k.asm}" for k in self.kernels)

    def __str__(self) -> str:
        if not self.regions:
            return self.remark
        out: list[str] = [self.remark] if self.remark else []
        whole = 0  # which several ranks run together
        for number, view in enumerate(self.regions, 1):
            title = f"region {number}: " if len(self.regions) > 1 else ""
            if view.program is not None:
                whole = number
            if view.step is not None:
                title = f"region {whole}, step {view.step}: "
            out += [f"{title}{view.summary()}", ""]
            out += _recorded_text(view) + _passes_text(view)
            if view.program is not None:
                from dcarray.comm.planning.program.description import described

                told = partial(_told, view)
                lines = ["    " + line for line in described(view.program, told)]
                out += ["over the ranks", *lines, ""]
            for kernel in view.kernels:
                out += self._kernel_text(kernel)
        return "\n".join(out)

    def _kernel_text(self, kernel: KernelView) -> list[str]:
        out = [_RULE, kernel.title, *("    " + line for line in kernel.formula), "", kernel.listing]
        if self.with_llvm:
            out += ["LLVM", kernel.llvm]
        if self.with_asm:
            out += ["assembly", kernel.asm]
        return out

    def svg(self) -> str:
        """The drawing: the graph as recorded beside the graph as it runs."""
        return draw([view.panels() for view in self.regions])

    def _repr_html_(self) -> str:
        if not self.regions:
            return f"<p>{escape(self.remark)}</p>"
        summary = "<br>".join(escape(view.summary()) for view in self.regions)
        text = f"<pre style='line-height:1.3'>{escape(str(self))}</pre>"
        return (
            f"<div><p>{summary}</p><div style='overflow-x:auto'>{self.svg()}</div>"
            f"<details><summary>passes and kernels</summary>{text}</details></div>"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the explanation to a file.

        Parameters
        ----------
        path : str or path
            The ending says how: ``.svg`` (drawing), ``.html`` (drawing and text) or ``.txt`` (text).

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            For another ending.
        """
        path = Path(path)
        writers: dict[str, Callable[[], str]] = {
            ".svg": self.svg,
            ".html": lambda: f"<!doctype html><meta charset='utf-8'>{self._repr_html_()}",
            ".txt": self.__str__,
        }
        if path.suffix not in writers:
            raise ValueError(f"{path.name!r} must end in {', '.join(writers)}")
        path.write_text(writers[path.suffix]() + "\n", encoding="utf-8")
        return path


def _recorded_text(view: RegionView) -> list[str]:
    """The statements as recorded, each with the user's line."""
    out = ["recorded" if view.step is None else "statements"]
    for number, stmt in enumerate(view.region.body, 1):
        lines = statement_lines(stmt, view.names)
        where = view.lines.get(stmt.loc, "")
        shape = shape_text(domain_of(stmt))
        out += [f"{number:>4}  {line}" if k == 0 else f"      {line}" for k, line in enumerate(lines)]
        out[-1] = f"{out[-1]:<66}  {shape:<14} {where}".rstrip()
    called = ", ".join(f"{array} is {name}" for array, name in view.names.items())
    return [*out, *([f"in what follows, {called}"] if called else []), ""]


def _passes_text(view: RegionView) -> list[str]:
    """What every pass did with the region after it, and what was refused in the end."""
    from dcarray.ir.text import dump

    out = []
    for stage in view.stages:
        out += [f"pass {stage.name}", *_note_lines(view, stage.notes)]
        out += ["    " + line for line in dump(stage.region).rstrip().splitlines()]
        out.append("")
    if view.refused:
        out += ["left as it is", *_note_lines(view, view.refused, with_pass=True), ""]
    return out


def _note_lines(view: RegionView, notes: tuple[Note, ...], with_pass: bool = False) -> list[str]:
    out = []
    for note in notes:
        if note.text.endswith("no data in common"):
            continue  # true of most pairs, and nothing is lost by it
        out.append(f"  - {f'{note.pass_name}: ' if with_pass else ''}{_told(view, note)}")
    return out


def _told(view: RegionView, note: Note | Reason) -> str:
    """A note, with the user's line."""
    where = view.lines.get(note.loc, "")
    return f"{note.text}{'  (' + where + ')' if where else ''}"


def view_region(
    region: Region,
    lines: Mapping[Any, str] | None = None,
    names: Mapping[str, str] | None = None,
    step: int | None = None,
) -> RegionView:
    """Everything about one region.

    Parameters
    ----------
    region : Region
        As recorded.
    lines : mapping, optional
        ``Stmt.loc`` to the user's line.
    names : mapping, optional
        Array name to what to show for it.
    step : int, optional
        Of the program of one of several ranks.

    Returns
    -------
    RegionView
    """
    from dcarray.ir.passes import Log
    from dcarray.ir.passes.cpu.pipeline import cpu_pipeline
    from dcarray.lowering.cpu import caches

    lines, names = lines or {}, names or {}
    stages: list[Stage] = []

    def on_change(name: str, after: Region, done: Sequence[Note]) -> None:
        stages.append(Stage(name, after, tuple(done)))

    log = Log()
    pipeline = cpu_pipeline(caches.limits(current().threads))
    final = pipeline.run(region, log, on_change=on_change)
    refused = tuple(note for note in log.notes if note.kind == "refused")
    # what was added to see memory in another shape is called like it
    names = {
        **{a.name: names[a.base] for a in final.arrays if a.base is not None and a.base in names},
        **names,
    }
    kernels = tuple(_kernel(k, stmt, final, lines, names) for k, stmt in enumerate(final.body, 1))
    return RegionView(region, final, tuple(stages), refused, kernels, lines, names, step=step)


def view_program(
    region: Region, program: Program, lines: Mapping[Any, str], names: Mapping[str, str]
) -> RegionView:
    """View a region that several ranks run together, as one of them does."""
    return RegionView(region, region, (), (), (), lines, names, program)


def _kernel(
    number: int, stmt: Stmt, region: Region, lines: Mapping[Any, str], names: Mapping[str, str]
) -> KernelView:
    from dcarray.lowering.c_family.emit import emit
    from dcarray.lowering.cpu.schedules.scheduler import schedule
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.libraries import dispatch

    kind, listing, kernel = "kernel", "", None
    if isinstance(stmt, Call):
        kind, listing = "call", f"library call {dispatch.described(stmt, region, current().threads)}"
    else:
        try:
            kernel, binding = schedule(stmt, region)
            listing = _body(emit(kernel, _buffer_names(kernel, binding, names)))
        except Unsupported as reason:
            kind, listing = "interpreter", f"no kernel: {reason}"
            if isinstance(stmt, Loop | While | Branch):
                listing = f"control flow around the statements, no kernel: {reason}"
    formula = tuple(statement_lines(stmt, names))
    where = lines.get(stmt.loc, "")
    cost = fused(stmt, region)
    return KernelView(number, kind, domain_of(stmt), formula, where, cost, listing, kernel)


def _buffer_names(kernel: Kernel, binding: Any, names: Mapping[str, str]) -> dict[str, str]:
    """Which array lies behind each pointer argument."""
    pairs = zip(kernel.buffers, binding.pointers, strict=True)
    return {b.name: names.get(p.array, p.array) for b, p in pairs if hasattr(p, "array")}


def _body(listing: str) -> str:
    """A C listing without what every listing has: the prelude and the entry point."""
    body, _, _ = listing.partition("/* All phases")
    kept = body.splitlines()
    while (
        kept and kept[0].startswith(("#include", "typedef", "static inline", "")) and "phase" not in kept[0]
    ):
        kept.pop(0)
    return "\n".join(kept).rstrip()
