"""Access paths (``self.u``, ``self.p.dt``, ``cfg["k"]``) and appended items as names of compiled code.

This is scalar replacement of the parts of objects: where statements use an object for nothing but parts with
known names, these parts are variables to compiled code, which are read before and bound after it.  Items are
results, which are appended when it has run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .appends import append_call, drop_comma, list_of
from .liveness import live_before
from .path_names import Path, Step, appended, has_own_names
from .syntax_facts import Names, children, loads, stores

__all__ = ["Chain", "WithNames", "with_names"]


class Chain(NamedTuple):
    """A name with attributes or constant indices after it: ``nodes[k]`` has the first ``k + 1`` steps of
    ``path``.  ``called``: it is what a call calls."""

    path: Path
    nodes: tuple[ast.Attribute | ast.Subscript, ...]
    called: bool

    def is_bound(self) -> bool:
        """Whether it is bound, or deleted."""
        return not isinstance(self.nodes[-1].ctx, ast.Load)


class WithNames(NamedTuple):
    """Statements with names in place of paths, and of items that are appended.

    Attributes
    ----------
    source : str
    read, written : tuple of Path
        The paths that they may read before they bind them, and those that they bind; the latter in order.
    loads : frozenset of str
        The names that are read somewhere in them.
    lists : tuple of str
        The names of the lists to which they append, in this order.
    """

    source: str
    read: tuple[Path, ...]
    written: tuple[Path, ...]
    loads: Names
    lists: tuple[str, ...]


def with_names(
    source: str, live: Names, lists: Sequence[str], length: Callable[[Chain], int]
) -> WithNames | str:
    """Return statements with names in place of paths and of what is appended; if there can be none, why.

    Parameters
    ----------
    source : str
    live : frozenset of str
        The names that the statements bind and that may be read afterwards.
    lists : sequence of str
        The names of lists to which they append, and do nothing else.
    length : callable
        Gives the number of steps of a chain that are the parts of objects, 0 if there are none.
    """
    if has_own_names(source):
        return "it has names like those that compiled code gives to attributes"
    tree = ast.parse(source)
    appending = [call for call in map(append_call, tree.body) if call is not None]
    appending = [call for call in appending if isinstance(call.func, ast.Attribute) and _name(call) in lists]
    bound = stores(tree)
    changes: list[tuple[ast.expr, str]] = [
        (call.func, f"{appended(k)} = ") for k, call in enumerate(appending)
    ]
    paths: dict[str, Path] = {}
    apart = {id(call.func) for call in appending}
    for chain in _chains(tree, apart):
        count = 0 if chain.path.root in bound else length(chain)
        if count:
            if isinstance(chain.nodes[count - 1].ctx, ast.Del):
                return "it deletes parts of objects"
            path = Path(chain.path.root, chain.path.steps[:count])
            paths[path.name] = path
            changes.append((chain.nodes[count - 1], path.name))
    text = _changed(source, changes, appending)
    if text is None:
        return "a path goes over several lines"
    body = ast.parse(text).body
    written = stores(*body) & paths.keys()
    read = live_before(body, live | written) & paths.keys()
    for name in written:
        inside = [p for p in paths.values() if p.steps[: len(paths[name].steps)] == paths[name].steps]
        if any(path.root == paths[name].root and path.name != name for path in inside):
            return f"{paths[name]} is bound to another object"
    return WithNames(
        text,
        tuple([path for name, path in sorted(paths.items()) if name in read]),
        tuple([path for name, path in paths.items() if name in written]),
        loads(*body),
        tuple(map(_name, appending)),
    )


def _name(call: ast.Call) -> str:
    return list_of(ast.Expr(call))


def _chains(tree: ast.AST, apart: set[int]) -> list[Chain]:
    """Return the longest chains in a tree in the order of its text, without some nodes."""
    found: list[Chain] = []

    def visit(node: ast.AST, called: bool) -> None:
        if id(node) in apart:
            return
        if isinstance(node, ast.Attribute | ast.Subscript):
            chain = _chain(node, called)
            if chain is not None:
                found.append(chain)
                return
        for child in children(node):
            visit(child, isinstance(node, ast.Call) and child is node.func)

    visit(tree, False)
    return found


def _chain(node: ast.Attribute | ast.Subscript, called: bool) -> Chain | None:
    nodes: list[ast.Attribute | ast.Subscript] = []
    steps: list[Step] = []
    inner: ast.expr = node
    while True:
        if isinstance(inner, ast.Attribute):
            steps.append(Step(False, inner.attr))
        elif isinstance(inner, ast.Subscript) and (key := _key(inner.slice)) is not None:
            steps.append(Step(True, key))
        else:
            break
        nodes.append(inner)
        inner = inner.value
    if not isinstance(inner, ast.Name) or not nodes:
        return None
    return Chain(Path(inner.id, tuple(reversed(steps))), tuple(reversed(nodes)), called)


def _key(index: ast.expr) -> str | int | None:
    """Return a constant index that may be a part of a name; None if it is none."""
    key = index.value if isinstance(index, ast.Constant) else None
    if isinstance(key, int):
        return key if type(key) is int and key >= 0 else None
    return key if isinstance(key, str) and key.isidentifier() else None


def _changed(source: str, changes: list[tuple[ast.expr, str]], appending: list[ast.Call]) -> str | None:
    """Return a source with texts in place of nodes; None if one of them is on several lines."""
    lines = [line.encode() for line in source.split("\n")]
    for call in appending:
        drop_comma(call, lines)
    for node, text in sorted(changes, key=lambda one: (one[0].lineno, one[0].col_offset), reverse=True):
        if node.lineno != node.end_lineno:
            return None
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + text.encode() + line[node.end_col_offset :]
    return b"\n".join(lines).decode()
