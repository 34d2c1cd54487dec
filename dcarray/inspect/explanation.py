"""An explanation: recordings, the passes over their regions, and the kernels that run them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .drawing import LEGEND, draw, shape_text
from .formula import domain_of, statement_lines
from .region_views import KernelView, RegionView

if TYPE_CHECKING:
    from dcarray.comm.planning.rank_program.steps import Note as Reason
    from dcarray.ir.passes import Note

_RULE = "-" * 100


@dataclass(frozen=True)
class Explanation:
    """An explanation of how recordings are run: ``print`` it, show it in a notebook, or `save` it.

    Attributes
    ----------
    regions : tuple of RegionView
        One for each recording; a function that needs values before its end has several.
    with_llvm, with_asm : bool
        Whether the text includes the LLVM text and the assembly of the kernels.
    remark : str
        A line above the regions, or instead of them.
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
        whole = 0  # the region that several ranks run together
        for number, view in enumerate(self.regions, 1):
            title = f"region {number}: " if len(self.regions) > 1 else ""
            if view.program is not None:
                whole = number
            if view.step is not None:
                title = f"region {whole}, step {view.step}: "
            if view.circuit is not None:  # instead of what the processor runs
                out += [*filter(None, (title.removesuffix(": "),)), *_recorded_text(view)]
                out += [*view.circuit.lines(), "", *filter(None, (view.circuit.text,))]
                continue
            out += [f"{title}{view.summary()}", *filter(None, (view.remark,)), ""]
            out += _recorded_text(view) + _passes_text(view)
            if view.program is not None:
                from dcarray.comm.planning.rank_program.description import program_lines

                show_note = partial(_note_text, view)
                lines = ["    " + line for line in program_lines(view.program, show_note)]
                out += ["program of this rank", *lines, ""]
            for graph in view.graphs:
                out += [*graph.lines(), ""]
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
        """Return the drawing as SVG: the data flow as recorded, and as it runs or the circuit."""
        legends = [view.circuit.legend for view in self.regions if view.circuit is not None]
        return draw([view.panels() for view in self.regions], legends[0] if legends else LEGEND)

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
            The suffix gives the format: ``.svg`` (drawing), ``.html`` (drawing and text) or ``.txt`` (text).

        Returns
        -------
        Path
            The path.

        Raises
        ------
        ValueError
            If the suffix is another one.
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
    """Return the statements as recorded, each with the user's line."""
    out = ["recorded" if view.step is None else "statements"]
    for number, stmt in enumerate(view.region.body, 1):
        lines = statement_lines(stmt, view.names)
        where = view.lines.get(stmt.loc, "")
        shape = shape_text(domain_of(stmt))
        out += [f"{number:>4}  {line}" if k == 0 else f"      {line}" for k, line in enumerate(lines)]
        out[-1] = f"{out[-1]:<66}  {shape:<14} {where}".rstrip()
    called = [f"{array} is {name}" for array, name in view.names.items()]
    called += [f"{symbol.name} stands for {symbol.hint}" for symbol in view.region.symbols]
    return [*out, *([f"names: {', '.join(called)}"] if called else []), ""]


def _passes_text(view: RegionView) -> list[str]:
    """Return the text of the passes that changed the region, with notes and results, and of refusals."""
    from dcarray.ir.text import dump

    out = []
    for stage in view.stages:
        out += [f"pass {stage.name}", *_note_lines(view, stage.notes)]
        out += ["    " + line for line in dump(stage.region).rstrip().splitlines()]
        out.append("")
    if view.refused:
        out += ["refused, with the reasons", *_note_lines(view, view.refused, with_pass=True), ""]
    return out


def _note_lines(view: RegionView, notes: tuple[Note, ...], with_pass: bool = False) -> list[str]:
    out = []
    for note in notes:
        if note.text.endswith("no data in common"):
            continue  # true of most pairs, and no loss
        out.append(f"  - {f'{note.pass_name}: ' if with_pass else ''}{_note_text(view, note)}")
    return out


def _note_text(view: RegionView, note: Note | Reason) -> str:
    """Return the text of a note, with the user's line."""
    where = view.lines.get(note.loc, "")
    return f"{note.text}{'  (' + where + ')' if where else ''}"
