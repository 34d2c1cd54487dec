"""LLVM access groups that mark loads to be prefetched and streaming stores, which the passes `prefetch_calls`
and `nontemporal_stores` look for after LLVM's optimiser."""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.passes.nontemporal_stores import GROUP
from dcarray.lowering.cpu.llvm.passes.prefetch_calls import NAME
from dcarray.lowering.cpu.llvm.text.builder import Builder
from dcarray.lowering.kernel.nodes import Affine

__all__ = ["AccessHints"]

SHORT = 512  # bytes: data further on in the same row is prefetched into the second cache


class AccessHints:
    """The hints of a module's loads and stores; ``lines`` is the metadata that describes them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._entries: list[str] = []
        self._marks: dict[tuple[int, tuple[Affine, ...]], str] = {}
        self._both: dict[tuple[str, str], str] = {}
        self._past: str | None = None

    def group(self, b: Builder, group: str, itemsize: int, prefetch: tuple[Affine, ...]) -> str:
        """Return the metadata of a load in the access group ``group`` that has prefetch distances."""
        mark = self._marks.get((itemsize, prefetch))
        if mark is None:
            mark = self._marks[itemsize, prefetch] = self._node(b, "distinct !{}")
            for one in prefetch:
                self._ask(b, mark, itemsize, one)
        return f", !llvm.access.group {self._together(b, group, mark)}"

    def past(self, b: Builder, group: str) -> str:
        """Return the metadata of a streaming store in the access group ``group``."""
        if self._past is None:
            self._past = self._node(b, "distinct !{}")
            self.lines.append(f"!{GROUP} = !{{{self._past}}}")
        return f", !llvm.access.group {self._together(b, group, self._past)}"

    def _together(self, b: Builder, group: str, mark: str) -> str:
        both = self._both.get((group, mark))
        if both is None:
            both = self._both[group, mark] = self._node(b, f"!{{{group}, {mark}}}")
        return both

    def _ask(self, b: Builder, mark: str, itemsize: int, prefetch: Affine) -> None:
        if len(prefetch.terms) > 1 or (prefetch.terms and prefetch.const):
            return  # not a whole number of rows
        arg, size = "", prefetch.const * itemsize
        if prefetch.terms:
            arg, size = prefetch.terms[0].arg or "", prefetch.terms[0].coef * itemsize
        near = bool(arg) or size <= SHORT
        self._entries.append(self._node(b, f'!{{{mark}, !"{arg}", i64 {size}, i64 {3 if near else 2}}}'))
        named = f"!{NAME} = !{{{', '.join(self._entries)}}}"
        if len(self._entries) == 1:
            self.lines.insert(0, named)
        self.lines[0] = named

    def _node(self, b: Builder, text: str) -> str:
        name = f"!{b.label('')}"
        self.lines.append(f"{name} = {text}")
        return name
