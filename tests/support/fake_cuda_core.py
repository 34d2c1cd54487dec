"""cuda.core's graphs on host memory: everything is recorded, and a launch runs the nodes for real, one after
the other, in an order that is drawn from all that the edges allow."""

from __future__ import annotations

import ctypes
import json
import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import cuda_on_host

from dcarray.lowering.gpu.cuda.nvrtc import Code, options


@dataclass(frozen=True)
class LaunchConfig:
    grid: int
    block: int


class Node:
    """A node of a definition: its kind, the parameters that it was added with, and those that it follows."""

    def __init__(self, kind: str, parameters: tuple[Any, ...]) -> None:
        self.kind, self.parameters = kind, parameters
        self._pred: set[Node] = set()

    @property
    def pred(self) -> set[Node]:
        return self._pred

    @pred.setter
    def pred(self, nodes: Any) -> None:
        self._pred = set(nodes)


class GraphDefinition:
    """A definition, with its nodes in the order in which they were added."""

    def __init__(self, core: FakeCore) -> None:
        self.core: FakeCore = core
        self.added: list[Node] = []
        core.definitions.append(self)

    def _add(self, kind: str, parameters: tuple[Any, ...]) -> Node:
        check(kind, parameters)
        self.added.append(Node(kind, parameters))
        return self.added[-1]

    def launch(self, config: LaunchConfig, kernel: Any, *args: Any) -> Node:
        return self._add("launch", (config, kernel, args))

    def memcpy(self, dst: int, src: int, size: int) -> Node:
        return self._add("memcpy", (dst, src, size))

    def memset(self, dst: int, value: int, width: int) -> Node:
        return self._add("memset", (dst, value, width))

    def instantiate(self) -> Graph:
        self.core.instantiations += 1
        return Graph(self)


def check(kind: str, parameters: tuple[Any, ...]) -> None:
    """As the driver checks parameters."""
    if kind == "launch":
        config, kernel, _ = parameters
        assert config.grid > 0 and 0 < config.block <= 1024 and isinstance(kernel, cuda_on_host.HostFunction)
    else:
        assert all(type(one) is int for one in parameters) and parameters[-1] > 0
        assert kind != "memset" or 0 <= parameters[1] < 256


class View:
    """A node of an executable graph, to be updated."""

    def __init__(self, graph: Graph, node: Node) -> None:
        assert node in graph.parameters, "a node of another graph"
        self.graph, self.node = graph, node

    def update(self, **parameters: Any) -> None:
        names = {"launch": "config kernel args", "memcpy": "dst src size", "memset": "dst value width"}
        given = tuple(parameters[name] for name in names[self.node.kind].split())
        assert len(given) == len(parameters)
        check(self.node.kind, given)
        assert repr(given) != repr(self.graph.parameters[self.node]), "nothing has changed"
        self.graph.parameters[self.node] = given
        self.graph.core.updates.append((self.node.kind, given))

    def enable(self) -> None:
        assert self.node in self.graph.disabled
        self.graph.disabled.remove(self.node)

    def disable(self) -> None:
        assert self.node not in self.graph.disabled
        self.graph.disabled.add(self.node)


class Graph:
    """An executable graph: the parameters that its nodes have now, and those that are disabled."""

    def __init__(self, definition: GraphDefinition) -> None:
        self.core, self.nodes = definition.core, tuple(definition.added)
        self.edges = {node: frozenset(node.pred) for node in self.nodes}
        self.parameters = {node: node.parameters for node in self.nodes}
        self.disabled: set[Node] = set()
        assert all(one in self.parameters for edges in self.edges.values() for one in edges)

    def __getitem__(self, node: Node) -> View:
        return View(self, node)

    def launch(self, stream: Any) -> None:
        assert stream is self.core.LEGACY_DEFAULT_STREAM
        self.core.launches += 1
        self.core.orders.append(self._run_all())

    def _run_all(self) -> list[int]:
        waiting = list(self.nodes)
        order = []
        while waiting:
            ready = [node for node in waiting if self.edges[node].isdisjoint(waiting)]
            node = self.core.rng.choice(ready)
            waiting.remove(node)
            order.append(node)
            if node not in self.disabled:
                self._run(node)
        return [self.nodes.index(node) for node in order]

    def _run(self, node: Node) -> None:
        match node.kind, self.parameters[node]:
            case "launch", (config, kernel, args):
                kernel(config.grid, config.block, tuple(args))
            case "memcpy", (dst, src, size):
                ctypes.memmove(dst, src, size)
            case "memset", (dst, value, width):
                ctypes.memset(dst, value, width)


class FakeCore:
    """The module ``cuda.core``.

    Attributes
    ----------
    log : list of str
        The functions launched one by one.
    definitions : list of GraphDefinition
    instantiations, launches : int
    updates : list of tuple
        The kind of each node that was updated, and its new parameters.
    orders : list of list of int
        Of each launch the order in which the nodes ran.
    """

    LaunchConfig = LaunchConfig
    LEGACY_DEFAULT_STREAM = "the default stream"

    def __init__(self, log: list[str], seed: int = 0) -> None:
        self.log = log
        self.rng = random.Random(seed)
        self.definitions: list[GraphDefinition] = []
        self.updates: list[tuple[str, tuple[Any, ...]]] = []
        self.orders: list[list[int]] = []
        self.instantiations = self.launches = self.current = 0
        self.graph = SimpleNamespace(GraphDefinition=lambda: GraphDefinition(self))
        self.ObjectCode = SimpleNamespace(from_cubin=self._from_cubin)

    def launch(self, stream: Any, config: LaunchConfig, kernel: Any, *args: Any) -> None:
        check("launch", (config, kernel, args))
        assert stream is self.LEGACY_DEFAULT_STREAM
        self.log.append(kernel.name)
        kernel(config.grid, config.block, args)

    def Device(self, number: int) -> Any:
        def set_current() -> None:
            self.current = number

        return SimpleNamespace(set_current=set_current)

    def _from_cubin(self, cubin: bytes) -> Any:
        source, flags = json.loads(cubin)
        functions = cuda_on_host.compiled(source, tuple(flags))
        return SimpleNamespace(get_kernel=functions.__getitem__)


def compile_source(source: str, architecture: str, narrow: bool = True) -> Code:
    """In place of NVRTC: code that `FakeCore` runs."""
    assert architecture.startswith("sm_")
    return Code(json.dumps([source, options(narrow)]).encode(), {})
