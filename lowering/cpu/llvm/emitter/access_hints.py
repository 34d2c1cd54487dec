"""LLVM access groups that mark streaming stores, which the pass `nontemporal_stores` looks for after LLVM's
optimiser."""

from __future__ import annotations

from dcarray.lowering.cpu.llvm.passes.nontemporal_stores import GROUP
from dcarray.lowering.cpu.llvm.text.builder import Builder

__all__ = ["AccessHints"]


class AccessHints:
    """The marks of a module's streaming stores; ``lines`` is the metadata that describes them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._both: dict[str, str] = {}
        self._past = ""

    def past(self, b: Builder, group: str) -> str:
        """Return the metadata of a streaming store in the access group ``group``."""
        if not self._past:
            self._past = self._node(b, "distinct !{}")
            self.lines.append(f"!{GROUP} = !{{{self._past}}}")
        if group not in self._both:
            self._both[group] = self._node(b, f"!{{{group}, {self._past}}}")
        return f", !llvm.access.group {self._both[group]}"

    def _node(self, b: Builder, text: str) -> str:
        name = f"!{b.label('')}"
        self.lines.append(f"{name} = {text}")
        return name
