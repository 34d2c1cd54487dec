"""Calls in the kernels of loops: draws of random numbers, and functions of the region."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from dcarray.ir import nodes, windows
from dcarray.ir.draw_calls import arguments_of, function_of
from dcarray.ir.draws import DRAWS
from dcarray.ir.nodes import Array, Call, Dim, Load, Region
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Draw, Elem, Invoke, Local, Routine, Stmt, Store, affine
from dcarray.lowering.nest.access import Arguments, memory_of
from dcarray.lowering.nest.body import Names, Scope
from dcarray.lowering.nest.loop_nest import EnclosingLoops
from dcarray.lowering.runtime.numpy_loops import draw_address

_U8 = np.dtype(np.uint64)
DRAW = 16  # the work of a draw
CALL = 64  # that of a call of a function, of which nothing is known


class CallMaker:
    """The lowering of calls; the subclass `LoopMaker` has the other statements."""

    region: Region
    names: Names
    arguments: Arguments
    enclosing: EnclosingLoops
    times: Dim
    work: Dim
    weighing: bool
    routines: dict[str, Routine | None]
    of_function: Callable[[Region, Arguments], CallMaker]
    block: Callable[[Iterable[nodes.Stmt]], tuple[Stmt, ...]]
    stacks: Callable[[Sequence[Array]], tuple[Stmt, ...]]

    def draw(self, stmt: Call) -> tuple[Stmt, ...]:
        """Return the statements that draw a number; raise `Unsupported` where NumPy has no such function."""
        name = function_of(stmt)
        address, draw = draw_address(name), DRAWS[name]
        if address is None:
            raise Unsupported(f"NumPy has no {name} here")
        self.work = self.work + self.times * DRAW
        arguments = self.arguments.kin(0, (), (), self.enclosing.variables)
        values = [Load(stmt.reads[2], _U8), *arguments_of(stmt)]
        for load in (load for value in values for load in windows.loads(value)):
            arguments.note(arguments.reach(load), "r")
        target = stmt.writes[2]
        arguments.note(arguments.access(target), "w")
        scope = Scope(arguments, self.names, [], [], 1, True)
        scope.announce(values, [target])
        generator, *given = map(scope.evaluate, values)
        number = Local(self.names("v"), draw.result)
        code = arguments.function(address)
        scope.add(Draw(number.name, name, code, generator, tuple(given), draw.result))
        scope.store(target, number, False)
        return (*scope.take(0), *scope.take(1))

    def function(self, stmt: Call) -> tuple[Stmt, ...]:
        """Return the statements that call a function of the region."""
        self.work = self.work + self.times * CALL
        if self.weighing:
            return ()
        name = dict(stmt.attrs)["name"]
        if name not in self.routines:
            self.routines[name] = None
            own = f"r{len(self.routines) - 1}"
            self.routines[name] = self.routine(own, dict(self.region.functions)[name])
        arguments = self.arguments.kin(0, (), (), self.enclosing.variables)
        given = [Load(window, arguments.memory.arrays[window.array].dtype) for window in stmt.reads]
        for load in given:
            arguments.note(arguments.reach(load), "r")
        for target in stmt.writes:
            arguments.note(arguments.access(target), "w")
        scope = Scope(arguments, self.names, [], [], 1, True)
        scope.announce(given, list(stmt.writes))
        values = tuple(map(scope.evaluate, given))
        kinds = [arguments.memory.arrays[window.array].dtype for window in stmt.writes]
        results = tuple([Local(self.names("v"), dtype) for dtype in kinds])
        scope.add(Invoke(results, f"r{[*self.routines].index(name)}", values))
        for target, local in zip(stmt.writes, results, strict=True):
            scope.store(target, local, False)
        return (*scope.take(0), *scope.take(1))

    def routine(self, name: str, function: Region) -> Routine:
        """Return a function of the region, each call of which has all its arrays on the stack."""
        region = replace(function, functions=self.region.functions)
        arguments = replace(self.arguments, memory=memory_of(region), private={}, pieces=None, inner={})
        maker = self.of_function(region, arguments)
        stacks = maker.stacks(region.arrays)
        taken = [array for role in ("inout", "in") for array in region.arrays if array.role == role]
        given = [array for role in ("inout", "out") for array in region.arrays if array.role == role]
        place = {name: buffer for name, (buffer, _) in arguments.private.items()}
        parameters = tuple([Local(self.names("v"), array.dtype) for array in taken])
        begin = [Store(place[a.name], affine(), local) for a, local in zip(taken, parameters, strict=True)]
        body = (*stacks, *begin, *maker.block(region.body))
        return Routine(name, parameters, body, tuple([Elem(place[a.name], affine(), a.dtype) for a in given]))
