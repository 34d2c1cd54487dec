"""The lowering of calls in kernels of loops: draws of random numbers, and calls of the region's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir import nodes, windows
from dcarray.ir.draw_calls import arguments_of, function_of
from dcarray.ir.draws import DRAWS
from dcarray.ir.functions import arrays_with, is_own
from dcarray.ir.nodes import Array, Call, Dim, Load, Region
from dcarray.ir.renaming import rewindow
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
    """The part of `LoopMaker` that lowers calls to kernel statements."""

    region: Region
    names: Names
    arguments: Arguments
    enclosing: EnclosingLoops
    times: Dim
    work: Dim
    weighing: bool
    routines: dict[Any, Routine | None]
    of_function: Callable[[Region, Arguments], CallMaker]
    block: Callable[[Iterable[nodes.Stmt]], tuple[Stmt, ...]]
    stacks: Callable[[Sequence[Array]], tuple[Stmt, ...]]

    def point(self, values: Sequence[nodes.Expr], targets: Sequence[nodes.Window] = ()) -> Scope:
        """Return a scope without loops, in which values are evaluated and elements stored."""
        arguments = self.arguments.kin(0, (), (), self.enclosing.variables)
        for load in (load for value in values for load in windows.loads(value)):
            arguments.note(arguments.reach(load), "r")
        for target in targets:
            arguments.note(arguments.access(target), "w")
        scope = Scope(arguments, self.names, [], [], 1, True)
        scope.announce(values, targets)
        return scope

    def draw(self, stmt: Call) -> tuple[Stmt, ...]:
        """Return the kernel statements that draw a random number; raise `Unsupported` if NumPy cannot."""
        name = function_of(stmt)
        address, draw = draw_address(name), DRAWS[name]
        if address is None:
            raise Unsupported(f"NumPy has no {name} here")
        self.work = self.work + self.times * DRAW
        values, target = [Load(stmt.reads[2], _U8), *arguments_of(stmt)], stmt.writes[2]
        scope = self.point(values, [target])
        generator, *given = map(scope.evaluate, values)
        number = Local(self.names("v"), draw.result)
        code = self.arguments.function(address)
        scope.add(Draw(number.name, name, code, generator, tuple(given), draw.result))
        scope.store(target, number, False)
        return (*scope.take(0), *scope.take(1))

    def function(self, stmt: Call) -> tuple[Stmt, ...]:
        """Return the kernel statements that call a function of the region; none if only work is counted."""
        self.work = self.work + self.times * CALL
        if self.weighing:
            return ()
        name = dict(stmt.attrs)["name"]
        function = dict(self.region.functions)[name]
        known = self.arguments.memory.arrays
        taken, outputs = (arrays_with(function, "inout", role) for role in ("in", "out"))
        shared = {a.name: w.array for a, w in zip(taken, stmt.reads, strict=True) if not is_own(a)}
        given = [Load(w, known[w.array].dtype) for a, w in zip(taken, stmt.reads, strict=True) if is_own(a)]
        targets = [w for a, w in zip(outputs, stmt.writes, strict=True) if is_own(a)]
        scope = self.point(given, targets)
        values = tuple(map(scope.evaluate, given))
        results = tuple([Local(self.names("v"), known[window.array].dtype) for window in targets])
        scope.add(Invoke(results, self.routine(name, function, shared), values))
        for target, local in zip(targets, results, strict=True):
            scope.store(target, local, False)
        return (*scope.take(0), *scope.take(1))

    def routine(self, name: str, function: Region, shared: Mapping[str, str]) -> str:
        """Return the name of the kernel routine for a function of the region, which is made if it is new.
        ``shared`` maps its array parameters to the region's arrays; each call has its others on the stack."""
        key = name, tuple(shared.items())
        number = f"r{[*self.routines].index(key) if key in self.routines else len(self.routines)}"
        if key in self.routines:
            return number
        self.routines[key] = None
        if not self.arguments.private.keys().isdisjoint(shared.values()):
            raise Unsupported(f"{name} gets an array that is no memory")
        known = self.arguments.memory.arrays
        names = {**{a.name: f"{name}.{a.name}" for a in function.arrays}, **shared}
        own = [replace(array, name=names[array.name]) for array in function.arrays if is_own(array)]
        body = [rewindow(s, lambda w: replace(w, array=names[w.array])) for s in function.body]
        arrays = (*own, *[known[array] for array in dict.fromkeys(shared.values())])
        region = replace(function, arrays=arrays, body=tuple(body), functions=self.region.functions)
        arguments = replace(self.arguments, memory=memory_of(region), private={}, pieces=None, inner={})
        maker = self.of_function(region, arguments)
        stacks = maker.stacks(own)
        place = {old: arguments.private[new][0] for old, new in names.items() if new in arguments.private}
        taken, outputs = (
            [a for a in arrays_with(function, "inout", role) if is_own(a)] for role in ("in", "out")
        )
        parameters = tuple([Local(self.names("v"), array.dtype) for array in taken])
        begin = [Store(place[a.name], affine(), local) for a, local in zip(taken, parameters, strict=True)]
        results = tuple([Elem(place[a.name], affine(), a.dtype) for a in outputs])
        self.routines[key] = Routine(
            number, parameters, (*stacks, *begin, *maker.block(region.body)), results
        )
        return number
