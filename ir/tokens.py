"""Tokens of the text form of regions, and its dimensions and affine indices."""

from __future__ import annotations

import operator
import re
from typing import Any, NamedTuple

from .dims import maximum, minimum, simplify
from .nodes import Dim

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)
      | (?P<line>\n)
      | (?P<number>0x[0-9a-f]+|\d+(\.\d*)?(e[+-]?\d+)?)
      | (?P<name>[^\W\d]\w*(\.[^\W\d]\w*)*|\$\d+)
      | (?P<string>"(\\.|[^"\\])*"|'(\\.|[^'\\])*')
      | (?P<mark>->|//|<=|>=|==|!=|[-+*%<>=(),:;{}\[\]])""",
    re.VERBOSE,
)


class ParseError(ValueError):
    """The text is not a region; the message names the line."""


class Token(NamedTuple):
    """A token: its kind, its text, and the line that it is in."""

    kind: str
    text: str
    line: int


def _tokens(text: str) -> list[Token]:
    raw: list[Token] = []
    at, line, depth = 0, 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError(f"line {line}: unexpected {text[at]!r}")
        at, kind, word = match.end(), str(match.lastgroup), match.group()
        if kind == "line":
            line += 1
        depth += (word in ("(", "[")) - (word in (")", "]")) if kind == "mark" else 0
        if kind != "space" and not (kind == "line" and depth > 0):
            raw.append(Token(kind, word, line))
    raw.append(Token("end", "", line))
    return raw


class Lin(NamedTuple):
    """An affine index while it is parsed: ``const + stride * axis``; ``axis`` None if it is constant."""

    const: Dim
    stride: Dim = 0
    axis: int | None = None


class Scanner:
    """A reader of tokens, with the names that dimensions (``symbols``) and indices (``axes``) may use."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.symbols: dict[str, Dim] = {}
        self.axes: dict[str, int] = {}

    @property
    def word(self) -> str:
        return self.tokens[self.at].text

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    def fail(self, wanted: str) -> ParseError:
        return ParseError(f"line {self.tokens[self.at].line}: {wanted} expected, not {self.word!r}")

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1].text

    def take(self, *words: str) -> bool:
        """Consume the next token if it is one of ``words``; return whether it was."""
        if self.kind not in ("string", "end") and self.word in words:
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise self.fail(repr(word))

    def name(self) -> str:
        if self.kind != "name":
            raise self.fail("a name")
        return self.next()

    def lines(self) -> None:
        while self.take("\n", ";"):
            pass

    def list(self, close: str, item: Any) -> tuple[Any, ...]:
        items: list[Any] = []
        while not self.take(close):
            if items:
                self.need(",")
                if self.take(close):
                    break
            items.append(item())
        return tuple(items)

    def dim(self) -> Dim:
        axes, self.axes = self.axes, {}
        lin = self.sum()
        self.axes = axes
        return simplify(lin.const)

    def sum(self) -> Lin:
        sign = -1 if self.take("-") else 1
        total = self.scale(self.product(), sign)
        while self.word in ("+", "-"):
            sign = 1 if self.next() == "+" else -1
            term = self.scale(self.product(), sign)
            if term.axis is not None and total.axis is not None:
                raise self.fail("an index with one axis")
            axis = total.axis if term.axis is None else term.axis
            total = Lin(total.const + term.const, total.stride + term.stride, axis)
        return total

    def scale(self, lin: Lin, by: Dim) -> Lin:
        return Lin(lin.const * by, lin.stride * by, lin.axis)

    def product(self) -> Lin:
        value = self.atom()
        while self.word in ("*", "//", "%"):
            mark, other = self.next(), self.atom()
            if mark == "*" and value.axis is None:
                value = self.scale(other, value.const)
            elif mark == "*" and other.axis is None:
                value = self.scale(value, other.const)
            elif value.axis is None and other.axis is None:
                divide = operator.floordiv if mark == "//" else operator.mod
                value = Lin(divide(value.const, other.const))
            else:
                raise self.fail("an affine index")
        return value

    def atom(self) -> Lin:
        if self.take("("):
            value = self.sum()
            self.need(")")
            return value
        if self.kind == "number" and self.word.isdigit():
            return Lin(int(self.next()))
        if self.word in ("max", "min") and self.tokens[self.at + 1].text == "(":
            pick = maximum if self.next() == "max" else minimum
            self.need("(")
            return Lin(pick(*self.list(")", self.dim)))
        if self.word in self.axes:
            return Lin(0, 1, self.axes[self.next()])
        if self.word in self.symbols:
            return Lin(self.symbols[self.next()])
        raise self.fail("a dimension")
