"""CUDA graphs at run time: built once through cuda.core, updated in place, launched with one call.

A graph is instantiated for an order of its nodes, which depends on the sizes of temporaries only through the
edges that their layout adds.  Pointers, scalars, integers and grids are parameters of its nodes: a run
updates those that have changed since the last run.  A node without elements is disabled.  Nodes that allocate
memory could not be updated, so temporaries lie in one block outside of the graph.

If the device makes no graphs (`_does_without`), or the driver has refused this one, the tasks of a graph are
launched one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dcarray.lowering.gpu.host_calls import allocate
from dcarray.lowering.gpu.kernels import failed

from .arena import Layout, layout
from .buffers import CudaBuffer
from .device import CudaDevice
from .tasks import Parameters, Task

__all__ = ["LaunchGraph"]

_MAX_GRAPHS = 8  # instantiated graphs that are kept
ALIKE = 4
"""Instantiated graphs that are kept for one order of their nodes."""


class _Instance:
    """An instantiated CUDA graph, with the current parameters of its nodes.

    ``core`` is the module ``cuda.core``; ``tasks`` has the nodes of each task, which run one after the other;
    ``before`` is as in `LaunchGraph`.
    """

    def __init__(
        self,
        device: CudaDevice,
        core: Any,
        tasks: Sequence[list[Parameters]],
        before: Sequence[Iterable[int]],
    ) -> None:
        self.device = device
        definition = core.graph.GraphDefinition()
        self.nodes: list[Any] = []
        self.steps: list[Parameters] = []
        self.enabled: list[bool] = []
        last: list[Any] = []
        for steps, earlier in zip(tasks, before, strict=True):
            previous = [last[k] for k in earlier]
            for step in steps:
                node = getattr(definition, step.kind)(*self.arguments(step))
                if previous:
                    node.pred = previous
                previous = [node]
                self.nodes.append(node)
                self.steps.append(step)
                self.enabled.append(True)
            last += previous
        self.executable = definition.instantiate()
        for position, step in enumerate(self.steps):
            self.enable(position, step.enabled)

    def arguments(self, step: Parameters) -> tuple[Any, ...]:
        """Return the arguments of the cuda.core method that adds the node of a step."""
        if step.kind != "launch":
            return step.values
        function, blocks, threads, given = step.values
        return (self.device.config(blocks, threads), function, *given)

    def update(self, tasks: Sequence[list[Parameters]]) -> None:
        """Give the nodes the parameters of other tasks of the same form, where these differ."""
        for position, step in enumerate(step for steps in tasks for step in steps):
            self.enable(position, step.enabled)
            if not step.enabled or step.is_like(self.steps[position]):
                continue
            view = self.executable[self.nodes[position]]
            match step.kind, step.values:
                case "launch", (function, blocks, threads, given):
                    view.update(config=self.device.config(blocks, threads), kernel=function, args=given)
                case "memcpy", (target, source, size):
                    view.update(dst=target, src=source, size=size)
                case "memset", (target, value, width):
                    view.update(dst=target, value=value, width=width)
            self.steps[position] = step

    def enable(self, position: int, enabled: bool) -> None:
        """Enable or disable the node at a position in `nodes`."""
        if self.enabled[position] != enabled:
            view = self.executable[self.nodes[position]]
            view.enable() if enabled else view.disable()
            self.enabled[position] = enabled


@dataclass(slots=True)
class _State:
    """The layouts and instances of a graph on one device.

    Attributes
    ----------
    layouts : dict
        Where temporaries lie, by their sizes.
    instances : dict
        Instantiated graphs, each with the edges that its layout adds.  The key is all that its last launch
        depended on (``key`` in `LaunchGraph.__call__`).  The latest is at the end.
    gone : dict
        Keys that instances had before they were updated to others, the latest at the end.
    """

    layouts: dict[Any, Layout] = field(default_factory=dict)
    instances: dict[Any, tuple[_Instance, Any]] = field(default_factory=dict)
    gone: dict[Any, None] = field(default_factory=dict)


class LaunchGraph:
    """A segment of a plan that runs as one CUDA graph: the order of its tasks, and the instantiated graphs.

    Parameters
    ----------
    before : tuple of tuple of int
        For each task the earlier ones that it has to follow.
    uses : tuple of tuple of int
        For each temporary the tasks that read or write it.
    checks : bool
        Whether kernels write to the buffer `failed`.
    """

    loader: ClassVar[str] = f"{__name__}:LaunchGraph"

    def __init__(
        self, before: tuple[tuple[int, ...], ...], uses: tuple[tuple[int, ...], ...], checks: bool
    ) -> None:
        self.parts = before, uses, checks
        self.checks = checks
        self.before, self.uses = before, uses
        self.refused = False
        self._states: dict[str, _State] = {}
        self._lock = threading.Lock()

    def __call__(
        self,
        device: CudaDevice,
        fresh: bool,
        given: tuple[Any, ...],
        values: tuple[int, ...],
        sizes: tuple[int, ...],
        tasks: Callable[..., tuple[Task, ...]],
    ) -> None:
        """Launch the tasks as one graph, or one by one if the device makes no graphs.

        Parameters
        ----------
        device : CudaDevice
        fresh : bool
            Whether the plan's run has changed nothing yet, so that it may be given up.
        given : tuple
            The buffers and scalars that the tasks use.
        values : tuple of int
            The sizes and loop variables on which the tasks depend.
        sizes : tuple of int
            The bytes of each temporary.
        tasks : callable
            Returns the tasks, given the buffers of the temporaries.  It is only called if no kept graph was
            last launched with equal arguments.

        Raises
        ------
        NotStarted
            If there is no memory for the temporaries of a ``fresh`` run.
        """
        with self._lock:
            state = self._states.setdefault(device.name, _State())
            place = self._layout(state, sizes, device.graph_bound)
            block = _allocated(device, place, fresh)
            if self.checks:
                given = (*given, failed(device))
            key = values, sizes, place, block and block.ptr, tuple([_identity(one) for one in given])
            known = state.instances.get(key) if device.graphs and not device.graph_refusal else None
            if known is not None:
                state.instances[key] = state.instances.pop(key)  # the latest
                device.launch_graph(known[0].executable)
                return
            parts = zip(place.offsets, sizes, strict=True)
            all_tasks = tasks(*(None if block is None else block.part(*part) for part in parts))
            graph = self._instance(device, state, place, all_tasks, key)
            if graph is None:
                for task in all_tasks:
                    task.run(device)
            else:
                device.launch_graph(graph.executable)

    def room(self, device: CudaDevice, sizes: tuple[int, ...]) -> int:
        """Return the size in bytes of the block of memory that holds temporaries of the given sizes."""
        with self._lock:
            state = self._states.setdefault(device.name, _State())
            return max(self._layout(state, sizes, device.graph_bound).size, 1)

    def _layout(self, state: _State, sizes: tuple[int, ...], bound: int) -> Layout:
        places = state.layouts.get((sizes, bound))
        if places is None:
            while len(state.layouts) >= 8 * _MAX_GRAPHS:
                del state.layouts[next(iter(state.layouts))]
            places = state.layouts[sizes, bound] = layout(sizes, self.uses, self.before, bound)
        return places

    def _instance(
        self, device: CudaDevice, state: _State, place: Layout, tasks: tuple[Task, ...], key: Any
    ) -> _Instance | None:
        """Return a graph with the parameters of this run; None if the tasks have to be launched one by one.

        A kept graph of the same order is updated.  If parameters from before an update come back, as when a
        program writes two results in turn, a further graph is made, so that each has its own.
        """
        if _does_without(device) or self.refused:
            return None
        alike = [other for other, (_, edges) in state.instances.items() if edges == place.edges]
        try:
            with device.core_current() as core:
                steps = [task.nodes(device) for task in tasks]
                if not alike or (key in state.gone and len(alike) < ALIKE):
                    graph = _Instance(device, core, steps, self._ordered(place))
                else:
                    graph, _ = state.instances.pop(alike[0])
                    state.gone[alike[0]] = None
                    graph.update(steps)
        except MemoryError:
            raise
        except Exception as error:  # whatever the driver refuses, the program has to run
            self.refused = True
            device.refuse_graphs(f"{type(error).__name__}: {error}")
            return None
        for kept, most in ((state.instances, _MAX_GRAPHS - 1), (state.gone, 2 * _MAX_GRAPHS)):
            while len(kept) > most:
                del kept[next(iter(kept))]
        state.instances[key] = graph, place.edges
        return graph

    def _ordered(self, place: Layout) -> list[set[int]]:
        """Return, for each task, the tasks that it has to follow, also by edges of the layout."""
        before = [set(earlier) for earlier in self.before]
        for first, second in place.edges:
            before[second].add(first)
        return before


def _does_without(device: CudaDevice) -> bool:
    """Whether a device makes no graphs: graphs are switched off, cuda.core is missing, or one failed."""
    return not device.graphs or device.core is None or device.graph_refusal is not None


def _identity(one: Any) -> Any:
    return one.ptr if type(one) is CudaBuffer else one.tobytes()


def _allocated(device: CudaDevice, place: Layout, fresh: bool) -> CudaBuffer | None:
    size = max(place.size, 1)
    if not place.offsets:
        return None
    block: CudaBuffer = allocate(device, size) if fresh else device.allocate(size)
    return block
