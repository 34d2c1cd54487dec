"""The verifier of regions, which runs on recorded regions and, in debugging and tests, after each pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from . import dims
from .analysis import effects
from .analysis.effects import clash, domain, nest_conflict, reads, rows_conflict, writes
from .analysis.independence import iteration_conflict
from .analysis.skew import time_tile_conflict
from .conditions import implied_inequalities
from .functions import arrays_with, is_own
from .nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Compute,
    Const,
    Dim,
    Expr,
    Gather,
    Index,
    Iota,
    Load,
    Loop,
    Nest,
    Part,
    Region,
    Rows,
    Size,
    Stmt,
    TimeTiles,
    While,
    Window,
)
from .ops import CALLS, OPS, has_loop, loop_dtype
from .verify_declarations import NATIVE, DeclarationChecker, VerifyError
from .windows import empty, identity, injective, same, walk, written_at_least

__all__ = ["VerifyError", "verify"]


def verify(region: Region) -> None:
    """Check a region; raise `VerifyError` if it breaks a rule.

    A condition, such as an index in bounds, must follow from the symbols and ``region.guards``, or else from
    an active ``dims.Guards``, which then decides it by its hints and records it.
    """
    _Checker(region).region()


class _Checker(DeclarationChecker):
    def __init__(self, region: Region) -> None:
        super().__init__(region)
        self.root: dict[str, str] = {}
        self.functions: dict[Any, Region] = {}
        self.known: list[Dim] = []  # at least 0, since the statement runs
        self.written: dict[str, list[Window]] = {}  # so far, by family
        self.dead = False  # in a loop that has no iterations: of its variable anything can be proved

    def region(self) -> None:
        self.declarations()
        self.root = effects.families(self.source)
        self.roles = effects.roles(self.source)
        self.functions = dict(self.source.functions)
        for name, function in self.source.functions:
            numbers = all(array.role in ("in", "inout") or is_own(array) for array in function.arrays)
            plain = all(array.base is None and array.strides is None for array in function.arrays)
            self.need(numbers and plain, f"the function {name} has arrays that it cannot have")
            alone = function.symbols == self.source.symbols and not (function.guards or function.functions)
            self.need(alone, f"the function {name} has the symbols of its region")
            source = replace(function, guards=self.source.guards, functions=self.source.functions)
            checker = _Checker(source)
            checker.declarations()
            checker.root, checker.roles = effects.families(source), effects.roles(source)
            checker.functions = self.functions
            checker.body(source.body)
        self.body(self.source.body)

    # ---- statements ---------------------------------------------------------------------------------
    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.stmt = stmt
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Compute():
                self.compute(stmt)
                self.record_accesses(stmt)
            case Call():
                self.call(stmt)
                self.record_accesses(stmt)
            case Rows(body, axes):
                plain = all(isinstance(inner, Part) for inner in body)
                self.need(body and plain and axes > 0, "rows need plain statements and an axis")
                (head, *others) = {domain(inner)[:axes] for inner in body}
                self.need(not others and len(head) == axes, "rows have their first axes in common")
                self.body(body)
                self.stmt = stmt
                if reason := rows_conflict(body, axes, self.source):
                    raise self.fail(f"rows have to give what their statements give in order: {reason}")
            case TimeTiles(body):
                plain = all(isinstance(inner, Part) and domain(inner) for inner in body)
                self.need(body and plain, "bands need plain statements with rows")
                self.body(body)
                self.stmt = stmt
                if reason := time_tile_conflict(stmt, self.source):
                    raise self.fail(f"bands have to give what their statements give in order: {reason}")
            case Nest(body):
                self.need(body, "a nest needs statements")
                self.need(len({domain(inner) for inner in body}) == 1, "a nest has one domain")
                self.body(body)
                self.stmt = stmt
                if reason := nest_conflict(body, self.source):
                    raise self.fail(f"a nest has to give what its statements give in order: {reason}")
            case Loop():
                self.loop(stmt)
            case While(cond, body):
                self.condition(cond)
                self.body(body)
            case Branch(cond, then, orelse):
                self.condition(cond)
                for side, holds in ((then, True), (orelse, False)):
                    with self.assuming(implied_inequalities(cond, holds)):
                        self.body(side)
            case _:
                raise self.fail("this is no statement")

    def loop(self, stmt: Loop) -> None:
        self.name(stmt.var)
        self.dims(stmt.bounds, "a loop's bound")
        self.need(dims.prove_eq(stmt.bounds[2], 0) is False, "a loop's step is not 0")
        outer, self.dead = self.dead, self.dead or dims.no_iterations(*stmt.bounds)
        self.scope.add(stmt.var)
        before = {root: len(windows) for root, windows in self.written.items()}
        with dims.ranging(stmt.var, stmt.bounds):
            low, high = dims.loop_range(*stmt.bounds)
            with self.assuming([] if low is None or high is None else [high - low]):
                self.body(stmt.body)
        for root, windows in self.written.items():  # the variable means nothing after the loop
            new = windows[before.get(root, 0) :]
            widened = [effects.widened_footprint(w, stmt.var, stmt.bounds) for w in new]
            windows[len(windows) - len(new) :] = widened
        self.stmt = stmt
        if stmt.parallel and (reason := iteration_conflict(stmt, self.source)):
            raise self.fail(f"the iterations of a parallel loop need nothing of one another: {reason}")
        self.scope.discard(stmt.var)
        self.dead = outer

    @contextmanager
    def assuming(self, facts: list[Dim]) -> Iterator[None]:
        """A context in which proofs may use that the dimensions ``facts`` are at least 0."""
        count = len(self.known)
        self.known += [fact for fact in map(dims.simplify, facts) if type(fact) is not int]
        yield
        del self.known[count:]

    def condition(self, cond: Expr) -> None:
        self.expr(cond, ())
        self.need(_dtype(cond) == np.bool_, "a condition is a bool")
        for node in walk(cond):
            if isinstance(node, Load | Gather):
                self.readable(Window(node.window.array, (), ()))

    def compute(self, stmt: Compute) -> None:
        target = stmt.target
        self.window(target)
        self.inside(written_at_least(target), self.arrays[target.array])
        dtype = self.arrays[target.array].dtype
        self.writable(target)
        self.expr(stmt.body, target.shape)
        if not (_dtype(stmt.body) == dtype):
            raise self.fail(f"a {_dtype(stmt.body)} is stored in a {dtype} array")
        omitted = {k for k in range(len(target.shape))} - {ix.axis for ix in target.index}
        if stmt.combine is None:
            self.need(stmt.init is None, "only a fold has a start value")
            self.need(injective(target) is True, "a write without combine touches every element once")
        else:
            op = OPS.get(stmt.combine)
            self.need(op is not None and op.combine, f"{stmt.combine} cannot fold values")
            if not (has_loop(stmt.combine, (dtype, dtype), dtype)):
                raise self.fail(f"{stmt.combine} does not fold {dtype}")
        scans = stmt.scan in range(len(target.shape)) and stmt.init is not None and injective(target) is True
        self.need(stmt.scan is None or scans, "a scan folds along an axis, from a start")
        if stmt.init is not None:
            self.expr(stmt.init, target.shape)
            self.need(_dtype(stmt.init) == dtype, "the start value has the target's dtype")
            used = set().union(*(_axes(node) for node in walk(stmt.init)))
            self.need(not used & omitted, "the start value does not depend on the folded axes")
        self.own_loads(stmt)

    def own_loads(self, stmt: Compute) -> None:
        for node in walk(*stmt.exprs):
            if not isinstance(node, Load | Gather):
                continue
            name = node.window.array
            if self.root[name] != self.root[stmt.target.array]:
                continue
            fixed = isinstance(node, Load) or not node.index  # not at a place that depends on data
            if (
                fixed
                and name == stmt.target.array
                and same(node.window, stmt.target)
                and injective(stmt.target) is True
            ):
                continue
            apart = fixed and clash(node.window, stmt.target, self.source) is False
            self.need(apart, f"the body reads {name}, which it writes, at other points")

    def call(self, stmt: Call) -> None:
        self.need(stmt.op in CALLS, f"there is no call {stmt.op!r}")
        for window in (*stmt.reads, *stmt.writes):
            self.window(window)
        updates = CALLS[stmt.op].updates
        if stmt.op == "function.call":
            self.function(stmt)
            updates = len(arrays_with(self.functions[dict(stmt.attrs)["name"]], "inout"))
        for k, window in enumerate(stmt.writes):
            self.writable(window)
            self.need(injective(window) is True, "a call writes every element once")
            for j, other in enumerate((*stmt.reads, *stmt.writes[:k])):
                apart = clash(window, other, self.source) is False
                known = CALLS[stmt.op]
                over = (k == 0 and j == known.over) or (k == j < updates)
                over = over and same(window, other)
                message = f"the call writes {window.array}, which it also touches as {other.array}"
                self.need(apart or over, message)

    def function(self, stmt: Call) -> None:
        """Check that the windows of a call fit the arrays that its function reads and writes."""
        name = dict(stmt.attrs).get("name")
        function = self.functions.get(name)
        if function is None:
            raise self.fail(f"there is no function {name!r}")
        for windows, roles in ((stmt.reads, ("inout", "in")), (stmt.writes, ("inout", "out"))):
            wanted = arrays_with(function, *roles)
            given = [self.arrays[window.array] for window in windows]
            fits = len(given) == len(wanted) and all(
                one.dtype == other.dtype
                and len(window.shape) == len(other.shape)
                and (is_own(other) or (one.strides is None and one.base is None and window == identity(one)))
                and all(dims.prove_eq(n, m) is True for n, m in zip(window.shape, other.shape, strict=True))
                for window, one, other in zip(windows, given, wanted, strict=True)
            )
            self.need(fits, f"{name} is called with what it does not take")

    # ---- order --------------------------------------------------------------------------------------
    def record_accesses(self, stmt: Compute | Call) -> None:
        for window in reads(stmt):
            self.readable(window)
        for window in (*writes(stmt), *effects.definite_writes(stmt)):
            self.written.setdefault(self.root[window.array], []).append(window)

    def readable(self, window: Window) -> None:
        """Check that an ``out`` array or temporary is read only where an earlier statement may have
        written."""
        if self.roles[window.array] in ("in", "inout") or empty(window) is True or self.dead:
            return
        before = self.written.get(self.root[window.array], [])
        met = any(clash(w, window, self.source) is not False for w in before)
        self.need(met, f"{window.array} is read before it is written")

    def writable(self, window: Window) -> None:
        self.need(self.roles[window.array] != "in", f"{window.array} is read-only")

    # ---- windows and expressions --------------------------------------------------------------------
    def window(self, window: Window) -> None:
        array = self.arrays.get(window.array)
        if array is None:
            raise self.fail(f"{window.array} is not declared")
        self.dims(window.shape, "the domain")
        self.need(len(window.index) == len(array.shape), f"{array.name} needs one index per axis")
        for ix in window.index:
            self.dims((ix.offset, ix.stride), "an index")
            if ix.axis is None:
                plain = type(ix.stride) is int and ix.stride == 0
                self.need(plain, "an index without an axis has no stride")
            else:
                self.need(0 <= ix.axis < len(window.shape), f"the domain has no axis {ix.axis}")
                self.need(dims.prove_eq(ix.stride, 0) is False, "an index with an axis moves")
        self.inside(window, array)

    def inside(self, window: Window, array: Array) -> None:
        if empty(window) is True:
            return
        with self.facts(window):
            for ix, size in zip(window.index, array.shape, strict=True):
                first = ix.offset
                last = first if ix.axis is None else first + ix.stride * (window.shape[ix.axis] - 1)
                for place in (first,) if ix.axis is None else (first, last):
                    inside = [self.decide(place), self.decide(size - 1 - place)]
                    if inside != [True, True]:
                        how = "reaches out" if False in inside else "is not proved to stay inside"
                        raise self.fail(f"the window on {array.name} {how} ({_text(ix)}, size {size})")

    def decide(self, dim: Dim) -> bool | None:
        """Whether ``dim >= 0``: proved with the facts, or else by the guards that the caller entered."""
        return dims.prove_nonneg(dim)

    @contextmanager
    def facts(self, window: Window) -> Iterator[None]:
        """A context in which proofs may use the region's guards, that the window's domain is not empty, and
        the conditions under which the statement runs."""
        if all(type(n) is int for n in (*window.shape, *self.arrays[window.array].shape)) and all(
            type(ix.offset) is int and type(ix.stride) is int for ix in window.index
        ):
            yield
            return
        known = [*self.source.guards, *(n >= 1 for n in window.shape if type(n) is not int)]
        known += [fact >= 0 for fact in self.known]
        with dims.assuming(known):
            yield

    def expr(self, root: Expr, domain: tuple[Dim, ...]) -> None:
        for node in walk(root):
            match node:
                case Load(window, dtype):
                    self.window(window)
                    self.need(window.shape == domain, f"{window.array} is loaded over another domain")
                    if not (dtype == self.arrays[window.array].dtype):
                        raise self.fail(f"{window.array} is no {dtype}")
                case Gather():
                    self.gather(node, domain)
                case Const(bits, dtype):
                    self.need(len(bits) == dtype.itemsize, "a constant has the bytes of its dtype")
                case Size(dim, _):
                    self.dims((dim,), "a size")
                case Iota(axis, _):
                    self.need(0 <= axis < len(domain), f"the domain has no axis {axis}")
                case Apply():
                    self.apply(node)
                case _:
                    raise self.fail(f"{node!r} is no expression")
            if _dtype(node) not in NATIVE:
                raise self.fail(f"an expression has the dtype {_dtype(node)}")

    def gather(self, node: Gather, domain: tuple[Dim, ...]) -> None:
        array = self.arrays.get(node.window.array)
        if array is None:
            raise self.fail(f"{node.window.array} is not declared")
        self.need(node.window.shape == domain, f"{array.name} is gathered over another domain")
        self.need(node.window.index == (), "the window of a gather has no index")
        self.need(len(node.index) == len(array.shape), f"{array.name} needs one index per axis")
        if not (node.dtype == array.dtype):
            raise self.fail(f"{array.name} is no {node.dtype}")
        whole = all(_dtype(ix).kind in "iu" for ix in node.index)
        self.need(whole, "an index is an integer")

    def apply(self, node: Apply) -> None:
        self.need(node.op in OPS, f"there is no operation {node.op!r}")
        given = tuple(_dtype(arg) for arg in node.args)
        if node.op == "cast":
            self.need(len(given) == 1, "a cast has one argument")
            return
        dtype = loop_dtype(node.op, given)
        if dtype is None or not has_loop(node.op, given, node.dtype):
            words = ", ".join(map(str, given))  # of a dtype its text takes longer than all else here
            if dtype is None:
                raise self.fail(f"{node.op} has no loop for ({words})")
            raise self.fail(f"{node.op} of ({words}) is {dtype}, not {node.dtype}")


def _dtype(expr: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = expr.dtype
    return dtype


def _axes(node: Expr) -> set[int]:
    if isinstance(node, Load):
        return {ix.axis for ix in node.window.index if ix.axis is not None}
    return {node.axis} if isinstance(node, Iota) else set()


def _text(ix: Index) -> str:
    return str(ix.offset) if ix.axis is None else f"{ix.offset} + {ix.stride}*i"
