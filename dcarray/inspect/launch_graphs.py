"""The views of graphs of launches in explanations: nodes and edges as text, and as a drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from .drawing import Node, Panel, shape_text, size_text
from .formula import domain_of, statement_lines

if TYPE_CHECKING:
    from dcarray.lowering.program.executable import Plan

__all__ = ["LaunchGraphView", "view_graphs"]


@dataclass(frozen=True)
class LaunchGraphView:
    """A graph that a device is given as a whole, to run its nodes in any order that the edges allow.

    Attributes
    ----------
    title : str
        The number of the graph, and how many nodes, edges and temporaries it has.
    kinds : tuple of str
        For each node ``"kernel"``, ``"copy"`` or ``"fill"``.
    numbers : tuple of int
        For each node the number of the statement in the final region.
    formulas : tuple of tuple of str
        For each node the statement in infix notation.
    shapes : tuple of str
        For each node the iteration domain.
    before : tuple of tuple of int
        For each node the positions of the nodes that it waits for.
    """

    title: str
    kinds: tuple[str, ...]
    numbers: tuple[int, ...]
    formulas: tuple[tuple[str, ...], ...]
    shapes: tuple[str, ...]
    before: tuple[tuple[int, ...], ...]

    def lines(self) -> list[str]:
        """Return the text: a line for each node, with those that it waits for."""
        lines = [self.title]
        rows = zip(self.kinds, self.formulas, self.shapes, self.before, strict=True)
        for number, (kind, formula, shape, before) in enumerate(rows, 1):
            waits = f"after {', '.join(str(one + 1) for one in before)}" if before else ""
            head = f"{number:>4}  {kind:<7} {formula[0]}"
            lines.append(f"{head:<66}  {shape:<14} {waits}".rstrip())
            lines += [f"{'':14}{line}" for line in formula[1:]]
        return lines

    def panel(self) -> Panel:
        """Return the drawing."""
        nodes = {
            f"n{number}": Node(
                "kernel" if kind == "kernel" else "in", f"{kind} {number + 1}  ·  {shape}", formula
            )
            for number, (kind, shape, formula) in enumerate(
                zip(self.kinds, self.shapes, self.formulas, strict=True)
            )
        }
        edges = {(f"n{k}", f"n{j}"): "" for j, before in enumerate(self.before) for k in before}
        title, _, note = self.title.partition(": ")
        return Panel(title[0].upper() + title[1:], note, nodes, edges)


def view_graphs(plan: Plan, target: str, names: Mapping[str, str]) -> tuple[LaunchGraphView, ...]:
    """View the graphs of a plan.

    Parameters
    ----------
    plan : Plan
    target : str
        The name of the target that made it; most have no graphs.
    names : mapping
        Array name to the name shown for it.
    """
    from dcarray.lowering.targets import get

    graphs_of = get(target).graphs
    if graphs_of is None:
        return ()
    graphs = graphs_of(plan.program)
    return tuple([_view(graph, number, len(graphs), names) for number, graph in enumerate(graphs, 1)])


def _view(graph: Any, number: int, count: int, names: Mapping[str, str]) -> LaunchGraphView:
    edges = sum(map(len, graph.before))
    title = f"graph {number}{f' of {count}' if count > 1 else ''}: {_count(len(graph.operations), 'node')}, "
    title += f"{_count(edges, 'edge')}, {_count(len(graph.temporaries), 'temporary', 'temporaries')}"
    if graph.temporaries and all(type(n) is int for array in graph.temporaries for n in array.shape):
        size = sum(prod(array.shape) * array.dtype.itemsize for array in graph.temporaries)
        title += f" of {size_text(size)} at most"
    nodes = [operation.node for operation in graph.operations]
    return LaunchGraphView(
        title,
        tuple([operation.kind for operation in graph.operations]),
        tuple([node.position + 1 for node in nodes]),
        tuple([tuple(statement_lines(node.stmt, names)) for node in nodes]),
        tuple([shape_text(domain_of(node.stmt)) for node in nodes]),
        tuple([tuple(sorted(before)) for before in graph.before]),
    )  # fmt: skip


def _count(n: int, noun: str, plural: str = "") -> str:
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
