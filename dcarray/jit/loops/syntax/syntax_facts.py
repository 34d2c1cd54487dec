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
        The classes of the nodes, but for those that make the exceptions of ``raise`` and ``assert``.
    long : bool
        Whether there is a string over several lines, besides docstrings.
    """

    reads: Names
    binds: Names
    gone: Names
    kinds: frozenset[type]
    long: bool


def facts(node: ast.AST) -> Facts:
    """Return the facts of a node, cached on it."""
    cached: Facts | None = getattr(node, "_facts", None)
    if cached is None:
        cached = node._facts = _find(node)  # type: ignore[attr-defined]
    return cached


def forget(node: ast.AST) -> None:
    """Drop the facts cached on a node: it is a copy that is about to change."""
    for cached in [key for key in vars(node) if key.startswith("_")]:
        delattr(node, cached)


def _find(root: ast.AST) -> Facts:
    names: tuple[set[str], set[str], set[str]] = set(), set(), set()
    kinds: set[type] = set()
    long, kind_of_root = False, type(root)
    for node in _own_nodes(root):
        kind = type(node)
        if node is not root and _has_facts(node):
            inner = facts(node)
            names[0].update(inner.reads)
            names[1].update(inner.binds)
            names[2].update(inner.gone)
            kinds |= inner.kinds
            long = long or inner.long
            continue
        kinds.add(kind)
        if kind is ast.Name:
            names[_PLACES[type(node.ctx)]].add(node.id)  # type: ignore[attr-defined]
            continue
        if kind is ast.Constant:
            text = isinstance(node.value, str | bytes)  # type: ignore[attr-defined]
            text = text and not (kind_of_root is ast.Expr and root.value is node)  # type: ignore[attr-defined]
            long = long or (text and node.lineno != node.end_lineno)  # type: ignore[attr-defined]
            continue
        if kind is ast.keyword and node.arg is None:  # type: ignore[attr-defined]
            kinds.add(ast.Starred)  # ``**kwargs``
        if kind is ast.ExceptHandler and node.name:  # type: ignore[attr-defined]
            names[2].add(node.name)  # type: ignore[attr-defined]
    if isinstance(root, ast.Raise | ast.Assert):  # what makes the exception is no part of what is compiled
        kinds = {
            type(root),
            *[type(node) for node in (walk(root.test) if isinstance(root, ast.Assert) else ())],
        }
    reads, binds, gone = map(frozenset, names)
    if type(root) in COMPREHENSIONS and ast.NamedExpr not in kinds:  # its targets are its own
        outside = facts(root.generators[0].iter).reads  # type: ignore[attr-defined]
        reads, binds = reads - binds | outside, NONE
    return Facts(reads, binds, gone, frozenset(kinds), long)


def _has_facts(node: ast.AST) -> bool:
    """Whether a node has facts of its own cache, and not only as part of the nodes around it."""
    return isinstance(node, ast.stmt) or type(node) in COMPREHENSIONS


def _own_nodes(root: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree, outer ones first, without those in statements or comprehensions in it."""
    span = getattr(root, _SPAN, None)
    if span is None:
        own = [root]
        for node in own:
            if node is root or not _has_facts(node):
                own += children(node)
        return own
    nodes, at, end = span
    own = [root]
    at += 1
    while at < end:
        node = nodes[at]
        own.append(node)
        at = getattr(node, _SPAN)[2] if _has_facts(node) else at + 1
    return own


_PLACES = {ast.Load: 0, ast.Store: 1, ast.Del: 2}


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly in a node, without operators and contexts, which have none."""
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = () if kind is ast.Constant else _fields(kind)
    nodes: list[ast.AST] = []
    for name in names:
        value = getattr(node, name, None)
        if type(value) is list:
            nodes += [v for v in value if isinstance(v, ast.AST)]
        elif isinstance(value, ast.AST):
            nodes.append(value)
    return nodes


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple([name for name in kind._fields if name not in _ASIDE])


def walk(root: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree, outer ones first, without operators and contexts.  If the tree is `listed`,
    these are the nodes that it had then."""
    span = getattr(root, _SPAN, None)
    if span is not None:
        nodes, start, end = span
        return nodes[start:end]  # type: ignore[no-any-return]
    whole = [root]
    for node in whole:
        whole += children(node)
    return whole


_SPAN = "_span"


class listed:
    """A context in which `walk` and `facts` find the nodes of a tree, and of all trees in it, in one list.

    To list them takes as long as to walk through the tree once.  What is put into the tree afterwards is not
    found.  At the end the tree is of no use any more.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._tree = tree

    def __enter__(self) -> list[ast.AST]:
        self._nodes: list[ast.AST] = []
        self._list(self._tree)
        return self._nodes

    def __exit__(self, *error: object) -> None:
        self._nodes.clear()  # which the nodes refer to: they shall go without a collection of garbage

    def _list(self, node: ast.AST) -> None:
        """List the nodes of a tree one after the other; all but leaves know their places."""
        nodes = self._nodes
        start = len(nodes)
        nodes.append(node)
        for child in children(node):
            if type(child) in _LEAVES:
                nodes.append(child)
            else:
                self._list(child)
        setattr(node, _SPAN, (nodes, start, len(nodes)))


_LEAVES = frozenset({ast.Name, ast.Constant})


def loads(*nodes: ast.AST | None) -> Names:
    """Return the names that are read somewhere in these nodes."""
    return NONE.union(*[facts(node).reads for node in nodes if node is not None])


def stores(*nodes: ast.AST) -> Names:
    """Return the names that are bound somewhere in these nodes."""
    return NONE.union(*[facts(node).binds for node in nodes])


def declared_names(function: ast.FunctionDef, kind: type[ast.Global | ast.Nonlocal]) -> Names:
    """Return the names that a function itself declares ``global`` or ``nonlocal`` (``kind``)."""
    names: set[str] = set()
    stack: list[ast.AST] = [*function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            names.update(node.names)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack += children(node)
    return frozenset(names)


def target_names(*targets: ast.expr) -> Names:
    """Return the names that an assignment to the targets certainly binds."""
    names: set[str] = set()
    for target in targets:
        match target:
            case ast.Name(name):
                names.add(name)
            case ast.Tuple(parts) | ast.List(parts):
                names |= target_names(*parts)
            case ast.Starred(part):
                names |= target_names(part)
    return frozenset(names)
