"""What the benchmark commands share: their arguments, and the writers of their results."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

GENERATED = "*Generated: the next run with `--docs` replaces this section.*"


class Arguments(argparse.ArgumentParser):
    """The arguments of a command: ``--json`` and ``--docs``, and ``--only`` if ``only`` says of what."""

    def __init__(self, command: str, about: str | None, only: str = "") -> None:
        super().__init__(prog=f"python -m benchmarks {command}".rstrip(), description=about)
        self.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
        self.add_argument("--docs", type=Path, metavar="FILE", help="write them into a section of FILE")
        if only:
            self.add_argument("--only", metavar="WORD", default="", help=f"{only} whose names hold WORD")


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

    def write(self, file: Path | None, title: str, about: str) -> None:
        """Write all lines, as they were printed, as a section of a document."""
        write_section(file, title, f"{GENERATED}\n\n{about}\n\n```\n{self.text()}\n```")


def write_json(file: Path | None, content: Any) -> None:
    """Write what was measured into a file, if there is to be one."""
    if file:
        file.write_text(json.dumps(content, indent=1) + "\n")


def write_section(file: Path | None, title: str, body: str, head: str | None = None) -> None:
    """Replace a section of a document, or append it; the other sections are not changed.

    Parameters
    ----------
    file : Path or None
        A Markdown document, created if it does not exist; with None nothing is done.
    title : str
        The title of the section, a heading of the second level.
    body : str
        The text below the heading.
    head : str, optional
        Text to replace what is before the first section; None leaves that unchanged.
    """
    if file is None:
        return
    text = file.read_text(encoding="utf-8") if file.exists() else "# Performance\n"
    start, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    sections = {part.split("\n", 1)[0]: part for part in parts} | {title: f"{title}\n\n{body}"}
    whole = "\n\n## ".join(part.strip("\n") for part in [start if head is None else head, *sections.values()])
    file.write_text(whole + "\n", encoding="utf-8")
