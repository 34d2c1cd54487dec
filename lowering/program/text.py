"""The readable text form of a program.

::

    program(N: int>=3) {
      in A: f64[N];  temp t: f64[N];  out s: f64[N]
      0  alloc t: f64[N]
      1  call blas.matmul(A, A) -> t  # numpy, after 0
      2  launch s[i] = add(t[i], A[i]) for i<N  # after 0, 1
      3  free t  # after 0, 1, 2
    }

Nodes are numbered in each body.  After ``#`` come the library or the reason, and the nodes on which the node
depends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir import text as ir_text

from . import nodes


def dump(program: nodes.Program) -> str:
    """Return a program as text."""
    head = ir_text.dump(replace(program.region, body=())).removeprefix("region").removesuffix("}\n")
    return "\n".join([f"program{head.rstrip()}", *_body(program.body, program, "  "), "}\n"])


def _body(body: tuple[nodes.Node, ...], program: nodes.Program, indent: str) -> Iterator[str]:
    for number, (node, before) in enumerate(zip(body, nodes.edges(body, program.region), strict=True)):
        (first, *others), remark = _lines(node, program), _remark(node)
        after = "after " + ", ".join(map(str, sorted(before))) if before else ""
        remark = ", ".join(filter(None, (remark, after)))
        yield f"{indent}{number}  {first}" + (f"  # {remark}" if remark else "")
        yield from (f"{indent}   {line}" for line in others)


def _remark(node: nodes.Node) -> str:
    match node:
        case nodes.LibraryCall(call=call):
            return call.library
        case nodes.HostCall(reason=reason):
            return reason
        case _:
            return ""


def _lines(node: nodes.Node, program: nodes.Program) -> list[str]:
    match node:
        case nodes.Alloc(array):
            shape = ", ".join(map(dims.show, array.shape))
            return [f"alloc {array.name}: {ir_text.dtype_name(array.dtype)}[{shape}]"]
        case nodes.Free(array):
            return [f"free {array.name}"]
        case nodes.Stop():
            return ["stop if flags are minded"]
        case nodes.Loop(var, bounds, body):
            head = f"for {var} in range({', '.join(map(dims.show, bounds))}) {{"
            return [head, *_body(body, program, "  "), "}"]
        case nodes.While(cond, head, body):
            inner = _body(head, program, "  "), _body(body, program, "  ")
            return ["repeat {", *inner[0], f"}} while {cond} {{", *inner[1], "}"]
        case nodes.Branch(cond, then, orelse):
            inner = _body(then, program, "  "), _body(orelse, program, "  ")
            return [f"if {cond} {{", *inner[0], "} else {", *inner[1], "}"]
        case _:
            (first, *others) = ir_text.show_stmt(node.stmt, program.region).split("\n")
            word = {nodes.Launch: "launch ", nodes.HostCall: "host ", nodes.Copy: "copy "}
            return [word.get(type(node), "") + first, *others]
