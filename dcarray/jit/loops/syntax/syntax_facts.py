"""Names and node types in an AST node, computed once for each node."""

from __future__ import annotations

import ast
from typing import NamedTuple

Names = frozenset[str]
NONE: Names = frozenset()
COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
_ASIDE = frozenset({"ctx", "op", "ops", "kind", "type_comment", "id", "attr", "arg", "n", "s", "conversion"})


class Facts(NamedTuple):
    """Names and node types anywhere in a node.

    Attributes
    ----------
    reads, binds, gone : frozenset of str
        The names that are read, bound, and unbound (by ``del x``, or at the end of ``except E as x``).
    kinds : frozenset of type
        The classes of the nodes.
    long : bool
        Whether there is a string over several lines.
    """

    reads: Names
    binds: Names
    gone: Names
    kinds: frozenset[type]
    long: bool


def facts(node: ast.AST) -> Facts:
    """Return the facts of a node, cached on it."""
    found: Facts | None = getattr(node, "_facts", None)
    if found is None:
        found = node._facts = _find(node)  # type: ignore[attr-defined]
    return found


def _find(root: ast.AST) -> Facts:
    names: tuple[set[str], set[str], set[str]] = set(), set(), set()
    kinds: set[type] = set()
    long = False
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        if (isinstance(node, ast.stmt) or kind in COMPREHENSIONS) and node is not root:
            inner = facts(node)
            for mine, theirs in zip(names, inner[:3], strict=True):
                mine |= theirs
            kinds |= inner.kinds
            long = long or inner.long
            continue
        kinds.add(kind)
        if kind is ast.Name:
            names[_PLACES[type(node.ctx)]].add(node.id)  # type: ignore[attr-defined]
            continue
        if kind is ast.Constant:
            text = isinstance(node.value, str | bytes)  # type: ignore[attr-defined]
            long = long or (text and node.lineno != node.end_lineno)  # type: ignore[attr-defined]
            continue
        if kind is ast.keyword and node.arg is None:  # type: ignore[attr-defined]
            kinds.add(ast.Starred)  # ``**kwargs``
        if kind is ast.ExceptHandler and node.name:  # type: ignore[attr-defined]
            names[2].add(node.name)  # type: ignore[attr-defined]
        stack += children(node)
    reads, binds, gone = map(frozenset, names)
    if type(root) in COMPREHENSIONS and ast.NamedExpr not in kinds:  # its targets are its own
        outside = facts(root.generators[0].iter).reads  # type: ignore[attr-defined]
        reads, binds = reads - binds | outside, NONE
    return Facts(reads, binds, gone, frozenset(kinds), long)


_PLACES = {ast.Load: 0, ast.Store: 1, ast.Del: 2}


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly in a node, without operators and contexts, which have none."""
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = () if kind is ast.Constant else _fields(kind)
    found: list[ast.AST] = []
    for name in names:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [v for v in value if isinstance(v, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple([name for name in kind._fields if name not in _ASIDE])


def walk(root: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree as `ast.walk` yields them, without operators and contexts: in a fifth of the
    time."""
    found = [root]
    for node in found:
        found += children(node)
    return found


def loads(*nodes: ast.AST | None) -> Names:
    """Return the names that are read somewhere in these nodes."""
    return NONE.union(*[facts(node).reads for node in nodes if node is not None])


def stores(*nodes: ast.AST) -> Names:
    """Return the names that are bound somewhere in these nodes."""
    return NONE.union(*[facts(node).binds for node in nodes])


def target_names(*targets: ast.expr) -> Names:
    """Return the names that an assignment to the targets certainly binds."""
    found: set[str] = set()
    for target in targets:
        match target:
            case ast.Name(name):
                found.add(name)
            case ast.Tuple(parts) | ast.List(parts):
                found |= target_names(*parts)
            case ast.Starred(part):
                found |= target_names(part)
    return frozenset(found)
