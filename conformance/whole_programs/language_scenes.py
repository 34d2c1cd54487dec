"""Scenes from small grammars: of Python, of operands of NumPy's types, and of what frames show."""

from __future__ import annotations

import ast
import re
from functools import cache, partial
from pathlib import Path

from .scenes import Scene
from .statements import Lines, Writer

__all__ = ["LANGUAGE_SCENES"]

Grammar = dict[str, list[str]]
_SYMBOL = re.compile(r"\$([a-z]+)")
_DEEPEST = 5
_FILES = "language", "operands", "frames"
_SHORT = "number", "inside", "test", "int", "float", "complex", "array"


@cache
def _read(name: str) -> tuple[Grammar, str]:
    """Return the grammar of a file, and the program around it."""
    rules, _, frame = Path(__file__).with_name(f"{name}.txt").read_text().partition("----\n")
    parts = (part.split("\n") for part in rules.strip().split("\n\n")[1:])
    return {symbol: [line.replace("\\n", "\n") for line in lines] for symbol, *lines in parts}, frame


def _written(w: Writer, text: str, grammar: Grammar, depth: int = 0) -> str:
    """Return a text with an alternative in place of each symbol; deep in others, one of the first ones."""
    out = []
    for line in text.split("\n"):
        while found := _SYMBOL.search(line):
            choices = grammar[found[1]]
            short = depth >= _DEEPEST and found[1] in _SHORT
            chosen = _written(w, w.pick(choices[:2] if short else choices), grammar, depth + 1)
            indent = " " * (len(line) - len(line.lstrip()))
            line = line[: found.start()] + chosen.replace("\n", f"\n{indent}") + line[found.end() :]
        out.append(line)
    return "\n".join(out)


def _some(w: Writer, alternatives: Grammar) -> Grammar:
    """Return a grammar with some of the alternatives of each symbol: what one program uses often."""
    odd = w.pick([0, 0, 0.02, 0.1, 0.5])

    def keeps(one: str, of: int) -> bool:
        return w.chance(kept / of * (odd if one.startswith("? ") else 1))

    grammar = {}
    for symbol, choices in alternatives.items():
        kept = w.pick([3, 6, 12, 99])
        found = [*choices[:2], *(one for one in choices[2:] if keeps(one, len(choices)))]
        grammar[symbol] = [one.removeprefix("? ") for one in found]
    return grammar


def _used(text: str) -> str:
    """Return a program's text without the functions and classes that nothing in it uses."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith(("_", "scene")):
            continue
        if len(re.findall(rf"\b{node.name}\b", text)) == 1:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            lines[first - 1 : node.end_lineno] = [""] * (node.end_lineno - first + 1)
    return "\n".join(lines)


def _scene(w: Writer, s: int, name: str) -> Lines:
    """Write what the grammar of a file has."""
    alternatives, frame = _read(name)
    while True:
        text = re.sub(r"(?<![a-zA-Z])N(?![a-zA-Z])", str(s), _written(w, frame, _some(w, alternatives)))
        try:
            text = _used(text)
            compile(text, "<scene>", "exec")
        except SyntaxError:  # such as a "break" outside of loops
            continue
        return [*text.replace(f"scene_{s}", f"scene{s}").strip().split("\n")]


LANGUAGE_SCENES: dict[str, Scene] = {name: partial(_scene, name=name) for name in _FILES}
