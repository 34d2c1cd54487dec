"""The canonical text of kernels, which is the key of their compiled code."""

from __future__ import annotations

from collections.abc import Iterator

from . import nodes as k
from .affine import Affine


def _affine_text(value: Affine) -> str:
    parts = []
    for term in value.terms:
        factors = [name for name in (term.arg, term.var) if name]
        parts.append("*".join(factors if term.coef == 1 else [str(term.coef), *factors]))
    if value.const or not parts:
        parts.append(str(value.const))
    return " + ".join(parts)


def expr_text(expr: k.Expr) -> str:
    """Return the canonical text of an expression."""
    match expr:
        case k.Lit(bits, dtype):
            return f"{dtype.name}:{bits[::-1].hex()}"
        case k.Index(at):
            return f"({_affine_text(at)})"
        case k.Local(name, _):
            return name
        case k.Elem(buffer, at, _, more):
            extra = "".join(f" + {expr_text(e)}*({_affine_text(s)})" for e, s in more)
            return f"{buffer}[{_affine_text(at)}{extra}]"
        case k.Op(name, args, dtype):
            return f"{name}.{dtype.name}({', '.join(map(expr_text, args))})"
        case k.NumpyOp(name, args, dtype, loop):
            return f"{name}.{dtype.name}{_loop_text(loop)}({', '.join(map(expr_text, args))})"


def _loop_text(loop: k.NumpyLoop) -> str:
    return f"[{loop.code}, {loop.data}{', clears' if loop.clears else ''}]"


def _row_text(row: k.Row) -> str:
    return f"{row.buffer}[{_affine_text(row.at)}{'...' if row.step else ''}]" + (
        f" step {row.step}" if row.step > 1 else ""
    )


def _least_text(values: tuple[Affine, ...]) -> str:
    first, *rest = map(_affine_text, values)
    return f"min({', '.join([first, *rest])})" if rest else first


def _lines(stmt: k.Stmt) -> Iterator[str]:
    match stmt:
        case k.Let(name, value):
            yield f"let {name}: {value.dtype.name} = {expr_text(value)}"
        case k.Declare(name, init, reassoc):
            yield f"var {name}: {init.dtype.name}{' reassoc' if reassoc else ''} = {expr_text(init)}"
        case k.Update(name, op, value):
            yield f"{name} {op}= {expr_text(value)}"
        case k.Assign(name, value):
            yield f"{name} = {expr_text(value)}"
        case k.Store(buffer, at, value, past):
            yield f"{buffer}[{_affine_text(at)}] = {expr_text(value)}{' nontemporal' if past else ''}"
        case k.For(var, lower, upper, step, kind, body, unroll, floors):
            by = (f" step {step}" if step != 1 else "") + (f" unroll {unroll}" if unroll else "")
            begin = ", ".join(map(_affine_text, (lower, *floors)))
            begin = f"max({begin})" if floors else begin
            yield f"{kind} {var} = {begin} .. {_least_text(upper)}{by} {{"
            yield from _block(body)
            yield "}"
        case k.Repeat(head, cond, body):
            yield "repeat {"
            yield from _block(head)
            yield f"}} while {expr_text(cond)} {{"
            yield from _block(body)
            yield "}"
        case k.If(cond, then, orelse):
            yield f"if {expr_text(cond)} {{"
            yield from _block(then)
            if orelse:
                yield "} else {"
                yield from _block(orelse)
            yield "}"
        case k.Stack(name, dtype, size, per_thread):
            yield f"stack {name}: {dtype.name}[{size}]{' per thread' if per_thread else ''}"
        case k.Threads(var, count, body):
            yield f"threads {var} < {count} {{"
            yield from _block(body)
            yield "}"
        case k.NumpyCall(name, reads, write, count, loop):
            args = ", ".join(map(_row_text, reads))
            yield f"{_row_text(write)} = {name}{_loop_text(loop)}({args}) for {_least_text(count)}"
        case k.Draw(name, function, code, generator, args, dtype):
            given = ", ".join(map(expr_text, (generator, *args)))
            yield f"let {name}: {dtype.name} = draw {function}[{code}]({given})"
        case k.Invoke(results, routine, args):
            names = ", ".join(f"{local.name}: {local.dtype.name}" for local in results)
            yield f"let {names} = {routine}({', '.join(map(expr_text, args))})"
        case k.TransposeTile(write, to, across, read, at, along, rows, cols):
            here = f"{read}[{_affine_text(at)}...] by {_affine_text(across)}, {_affine_text(along)}"
            extent = f"{_least_text(rows)}, {_least_text(cols)}"
            yield f"{write}[{_affine_text(to)}...] = turn {here} for {extent}"


def _block(body: tuple[k.Stmt, ...]) -> Iterator[str]:
    for stmt in body:
        for line in _lines(stmt):
            yield "  " + line


def kernel_text(kernel: k.Kernel) -> str:
    """Return the canonical text of a kernel: equal if and only if kernels are equal, and without sizes."""
    args = [
        f"{b.name}: {b.dtype.name} {b.access}{'' if b.noalias else ' alias'}" + " by value" * b.by_value
        for b in kernel.buffers
    ]
    lines = [f"kernel({', '.join([*args, *kernel.ints])}) {{"]
    for routine in kernel.routines:
        names = ", ".join(f"{local.name}: {local.dtype.name}" for local in routine.parameters)
        lines.append(f"  routine {routine.name}({names}) {{")
        lines.extend("  " + line for line in _block(routine.body))
        lines.append(f"  }} giving {', '.join(map(expr_text, routine.results))}")
    for phase in kernel.phases:
        of = f" of {phase.threads}" if phase.threads else ""
        lines.append(f"  parallel {phase.kind}{of} {phase.var} < {_affine_text(phase.extent)} {{")
        lines.extend("  " + line for line in _block(phase.pre))
        lines.append("    --")
        lines.extend("  " + line for line in _block(phase.body))
        lines.append("  }")
    return "\n".join([*lines, "}"])
