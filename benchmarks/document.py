"""The writer of sections of a document: each benchmark command writes its own results."""

from __future__ import annotations

import re
from pathlib import Path

GENERATED = "*Generated: the next run with `--docs` replaces this section.*"


class Telling:
    """A callable that prints lines, and keeps them so that they can be written into a document."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __call__(self, line: str) -> None:
        print(line, flush=True)
        self._lines.append(line)

    def text(self) -> str:
        """Return all lines as they were printed."""
        return "\n".join(line.rstrip() for line in self._lines)

    def write(self, file: Path, title: str, about: str) -> None:
        """Write all lines, as they were printed, as a section of a document."""
        write_section(file, title, f"{GENERATED}\n\n{about}\n\n```\n{self.text()}\n```")


def write_section(file: Path, title: str, body: str, head: str | None = None) -> None:
    """Replace a section of a document, or append it; the other sections are not changed.

    Parameters
    ----------
    file : Path
        A Markdown document, created if it does not exist.
    title : str
        The title of the section, a heading of the second level.
    body : str
        The text below the heading.
    head : str, optional
        Text to replace what is before the first section; None leaves that unchanged.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else "# Performance\n"
    start, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    sections = {part.split("\n", 1)[0]: part for part in parts} | {title: f"{title}\n\n{body}"}
    whole = "\n\n## ".join(part.strip("\n") for part in [start if head is None else head, *sections.values()])
    file.write_text(whole + "\n", encoding="utf-8")
