"""The loops of a phase as LLVM text, in which a run may be stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dcarray.lowering.kernel.nodes import Affine, For, If, Lit, NumpyCall, Op, Repeat, Stmt, Store
from dcarray.lowering.kernel.walk import is_contiguous, values, walk, walk_statements

from .routines import Routines

_SOME, _MANY = 8, 1 << 14  # iterations of a loop between two looks whether to stop
# A loop of a known length is unrolled only when vectors have been made of it: the loop over these.
EARLY = '!{!"llvm.loop.unroll.disable"}'
SCALAR = '!{!"llvm.loop.vectorize.enable", i1 false}'
LATER = '!{!"llvm.loop.vectorize.followup_vectorized", !{!"llvm.loop.isvectorized", i32 1}}'


def _known(low: str, high: str) -> bool:
    """Whether the bounds of a loop are constants."""
    return "%" not in low + high


def _unchecked(body: tuple[Stmt, ...]) -> int:
    """Return how many times statements may run between two looks whether to stop.  Loops look themselves, but
    those over vectors."""
    for stmt in body:
        match stmt:
            case For(kind="vector" | "short") | NumpyCall():
                return _SOME
            case If(_, then, orelse) if _unchecked((*then, *orelse)) == _SOME:
                return _SOME
    return _MANY


def _is_guarded(body: tuple[Stmt, ...]) -> bool:
    """Whether branches have divisions or roots that LLVM's vectors would also make for all other elements."""
    inside = [*walk_statements(stmt for stmt in body if isinstance(stmt, If))]
    every = [op for one in inside for value in values(one) for op in walk(value) if isinstance(op, Op)]
    count = sum(op.name in ("divide", "sqrt") and not isinstance(op.args[-1], Lit) for op in every)
    return count + any(isinstance(one, Store) for one in inside) > 1  # a result selected at once is masked


class Loops(Routines):
    """The emitter of loops; the subclass adds the other statements."""

    @contextmanager
    def scope(self, variables: Mapping[str, str], group: str = "") -> Iterator[None]:
        """A context with its own locals and loop variables; ``group`` is its access group."""
        outer = self.b.group, self.locals, self.vars
        self.locals, self.vars = dict(self.locals), {**self.vars, **variables}
        if group:
            self.b.group = f", !llvm.access.group {group}"
        yield
        self.b.group, self.locals, self.vars = outer

    @contextmanager
    def iterations(self, low: str, high: str, step: int, notes: list[str]) -> Iterator[str]:
        """A context whose code is the body of a loop; ``notes`` gets the metadata of its last jump."""
        b = self.b
        start, head, inside, latch, end = (
            b.label(hint) for hint in ("start", "head", "body", "latch", "end")
        )
        b.fall_into(start)
        b.fall_into(head)
        i, following = b.name(), b.name()
        b.line(f"{i} = phi i64 [ {low}, %{start} ], [ {following}, %{latch} ]")
        b.fork(b.icmp("slt", "i64", i, high), inside, end)
        b.begin(inside)
        yield i
        b.fall_into(latch)
        b.line(f"{following} = add nsw i64 {i}, {step}")
        b.jump(head + "".join(notes))
        b.begin(end)

    def loop(
        self, var: str, low: str, high: str, step: int, vector: bool, body: tuple[Stmt, ...], unroll: int = 0
    ) -> None:
        b, notes = self.b, list[str]()
        with self.iterations(low, high, step, notes) as i:
            group, calls = f"!{b.label('')}", b.calls
            outer_along, self.along = self.along, is_contiguous(body, var)
            with self.scope({var: i}, group if vector else ""):
                self.block(body)
            self.along = outer_along
            if vector:  # interleaved iterations around a call would all spill what they hold
                known = (EARLY, LATER) if _known(low, high) else ()
                notes.append(self.note(group, 1 if b.calls > calls else unroll, known))
            elif any(isinstance(stmt, For) and stmt.kind == "short" for stmt in body) or _is_guarded(body):
                notes.append(self.note(group, 0, (SCALAR,)))  # gathers are slower, guards would be lost

    def strips(self, loop: For, low: str, high: str) -> None:
        """Emit a loop as one over strips of its iterations, between which the run may be stopped."""
        b, many = self.b, _unchecked(loop.body)
        if _known(low, high) and int(high) - int(low) <= many * loop.step:
            return self.loop(loop.var, low, high, loop.step, False, loop.body, loop.unroll)
        length = many * loop.step
        with self.iterations(low, high, length, []) as first:
            self.stop()
            last = b.intrinsic("smin", "i64", b.op(f"add nsw i64 {first}, {length}"), high)
            if loop.step == 1 and not _is_guarded(loop.body):  # LLVM unrolls loops of known lengths
                self.counted_loop(loop.var, first, b.op(f"sub nuw nsw i64 {last}, {first}"), loop.body)
            else:
                self.loop(loop.var, first, last, loop.step, False, loop.body, loop.unroll)

    def has_at_most(self, size: int, lower: Affine, uppers: tuple[Affine, ...]) -> bool:
        """Whether a loop has at most ``size`` iterations, given that no chunk has a negative number."""
        chunks = all(t.var == self.phase.var and t.arg is None and t.coef >= 0 for t in lower.terms)
        return chunks and lower.const >= 0 and any(not one.terms and one.const <= size for one in uppers)

    def vector_loop(
        self, var: str, low: str, high: str, size: int, body: tuple[Stmt, ...], few: bool = False
    ) -> None:
        """Emit a loop over whole vectors of ``size`` elements, and one masked vector for the remainder.  With
        ``few`` there is only that: LLVM would complain that it cannot count iterations that never run."""
        b = self.b
        if _known(low, high) and int(high) - int(low) == 8:  # the accumulators of a sum
            size = min(size, 8)
        wide = f'!{{!"llvm.loop.vectorize.width", i32 {size}}}'
        masked = '!{!"llvm.loop.vectorize.predicate.enable", i1 true}'
        if _known(low, high):
            count = max(0, int(high) - int(low))
            full = count // size * size
            # What is left over comes first: behind the vectors it might be given what they have loaded last,
            # and LLVM makes no vectors in a loop of which something is used later.  Nor of two elements.
            left = count - full
            places = [(full, left)] if left > 2 else [(full + k, 1) for k in range(left)]
            pieces = [*((first, many, (wide, masked)) for first, many in places), (0, full, (wide,))]
            for first, many, notes in pieces:
                if many:
                    self.counted_loop(var, str(int(low) + first), str(many), body, *notes, EARLY, LATER)
            return
        some, more, last, end = (b.label(hint) for hint in ("some", "more", "last", "end"))
        b.fork(b.icmp("slt", "i64", low, high), some, end)
        b.begin(some)
        if few:
            b.jump(last)
            b.begin(last)
            self.counted_loop(var, low, b.op(f"sub nuw nsw i64 {high}, {low}"), body, wide, masked)
            b.fall_into(end)
            return
        before = b.op(f"add nsw i64 {b.op(f'sub nuw nsw i64 {high}, {low}')}, -1")
        whole = b.op(f"and i64 {before}, {-size}")
        b.fork(b.icmp("ult", "i64", whole, str(size)), last, more)
        b.begin(more)
        self.counted_loop(var, low, whole, body, wide)
        b.fall_into(last)
        rest = b.op(f"add nuw nsw i64 {b.op(f'and i64 {before}, {size - 1}')}, 1")
        self.counted_loop(var, b.op(f"add nsw i64 {low}, {whole}"), rest, body, wide, masked)
        b.fall_into(end)

    def counted_loop(self, var: str, low: str, count: str, body: tuple[Stmt, ...], *notes: str) -> None:
        """Emit a loop of ``count`` (at least one) iterations from ``low`` on; ``notes`` are metadata."""
        b = self.b
        start, inside, latch, end = (b.label(hint) for hint in ("start", "body", "latch", "end"))
        b.fall_into(start)
        b.fall_into(inside)
        k, following = b.name(), b.name()
        b.line(f"{k} = phi i64 [ 0, %{start} ], [ {following}, %{latch} ]")
        variables = {var: b.op(f"add nsw i64 {low}, {k}")}
        group = f"!{b.label('')}"
        with self.scope(variables, group if notes else ""):
            self.block(body)
        b.fall_into(latch)
        b.line(f"{following} = add nuw nsw i64 {k}, 1")
        again = b.icmp("ult", "i64", following, count)
        b.fork(again, inside, end, self.note(group, 1, notes) if notes else "")
        b.begin(end)

    def note(self, group: str, unroll: int, more: tuple[str, ...] = ()) -> str:
        """Return the loop metadata for the vectoriser: the loop's iterations are independent."""
        self.metadata.append(f"{group} = distinct !{{}}")
        parts = [f'!{{!"llvm.loop.parallel_accesses", {group}}}', *more]
        if unroll:
            parts.append(f'!{{!"llvm.loop.interleave.count", i32 {unroll}}}')
        names = []
        for text in parts:
            names.append(f"!{self.b.label('')}")
            self.metadata.append(f"{names[-1]} = {text}")
        own = f"!{self.b.label('')}"
        self.metadata.append(f"{own} = distinct !{{{', '.join([own, *names])}}}")
        return f", !llvm.loop {own}"

    def repeat(self, stmt: Repeat) -> None:
        """Emit a while loop.  It ends, too, if the run is to be stopped: no other exit keeps LLVM from
        unrolling the loops around it, and what follows may run, as after a check that has failed."""
        b = self.b
        head, inside, end = (b.label(hint) for hint in ("repeat", "body", "end"))
        b.fall_into(head)
        with self.scope({}):
            self.block(stmt.head)
            go_on = b.inverse(self.has_come())
            b.fork(b.op(f"select i1 {go_on}, i1 {self.expr(stmt.cond)}, i1 false"), inside, end)
            b.begin(inside)
            self.block(stmt.body)
        b.jump(head)
        b.begin(end)
