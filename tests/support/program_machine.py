"""Runs programs node by node over the interpreter of regions, each node when its edges allow it."""

import random
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir import dims, interp
from dcarray.lowering.program import nodes


class ProgramMachine:
    """The memory of one run, in an order that ``rng`` draws; without it, in the program's."""

    def __init__(self, program: nodes.Program, memory: Any, values: Any, rng: random.Random | None = None):
        self.program, self.values, self.rng = program, dict(values), rng
        self.memory = dict(memory)
        self.arrays = {array.name: array for array in program.region.arrays}
        for array in program.region.arrays:
            if array.role == "out" and array.base is None and array.name not in memory:
                self.allocate(array)

    def run(self) -> dict[str, np.ndarray]:
        self.body(self.program.body)
        assert not [n for n in self.memory if self.arrays[n].role == "temp" and self.arrays[n].base is None]
        return {a.name: self.view(a.name) for a in self.program.region.arrays if a.role in ("out", "inout")}

    def body(self, body):
        todo = dict(enumerate(nodes.edges(body, self.program.region)))
        while todo:
            ready = [k for k, before in todo.items() if before.isdisjoint(todo)]
            k = self.rng.choice(ready) if self.rng else min(todo)
            assert k in ready  # the order of the program is one of those that the edges allow
            del todo[k]
            self.node(body[k])

    def node(self, node):
        match node:
            case nodes.Alloc(array):
                assert array.name not in self.memory
                self.allocate(array)
            case nodes.Free(array):
                del self.memory[array.name]
            case nodes.Stop():
                pass
            case nodes.Loop(var, bounds, body):
                for value in range(*(dims.evaluate(d, self.values) for d in bounds)):
                    self.values[var] = value
                    self.body(body)
                self.values.pop(var, None)
            case nodes.While(cond, head, body):
                self.body(head)
                while self.memory[cond]:
                    self.body(body)
                    self.body(head)
            case nodes.Branch(cond, then, orelse):
                self.body(then if self.memory[cond] else orelse)
            case _:
                self.statement(node.stmt, nodes.touched(node))

    def statement(self, stmt, used):
        arrays = tuple(
            replace(a, role="inout", base=None, strides=None)
            for a in self.program.region.arrays
            if a.name in used
        )
        region = replace(self.program.region, arrays=arrays, body=(stmt,))
        interp.run(region, {name: self.view(name) for name in used}, self.values)

    # ---- memory -------------------------------------------------------------------------------------
    def shape(self, array):
        return tuple(dims.evaluate(n, self.values) for n in array.shape)

    def allocate(self, array):
        """Memory with something in it that is not what was there before."""
        made = np.empty(self.shape(array), array.dtype)
        made.view(np.uint8 if made.ndim and made.size else made.dtype)[...] = 0x5A
        self.memory[array.name] = made

    def view(self, name):
        """An array; of what has a base and is not given, the base's memory in another shape."""
        if name in self.memory:
            return self.memory[name]
        array = self.arrays[name]
        return self.view(array.base).reshape(-1).view(array.dtype).reshape(self.shape(array))
