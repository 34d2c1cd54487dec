"""Sections of ``docs/conformance.md``, each written by the command that measures what it says."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_section"]


def write_section(file: Path, title: str, body: str) -> None:
    """Replace a section of a document, or add it at the end.

    Parameters
    ----------
    file : Path
        A Markdown document; made if it is missing.
    title : str
        Of the section, a heading of the second level.
    body : str
        The text below the heading.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else "# Conformance\n"
    heading = f"## {title}\n"
    before, found, rest = text.partition(heading)
    after = rest.find("\n## ") if found else -1
    tail = rest[after + 1 :] if after >= 0 else ""
    parts = [before.rstrip(), heading + "\n" + body.strip("\n"), tail.strip()]
    file.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
