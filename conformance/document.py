"""Sections of ``docs/conformance.md``, each written by the command that measures what it says."""

from __future__ import annotations

from pathlib import Path

__all__ = ["HEAD", "write_section"]

HEAD = """\
# Conformance

NumPy's functions one by one, other people's tests, and random programs on wrapped arrays.  Each section was
written by the command that it names, and is written anew by the next run of it with `--docs`."""


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
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    sections[title] = body
    parts = ["## " + title + "\n\n" + body.strip("\n") for title, body in sections.items()]
    file.write_text("\n\n".join([HEAD, *parts]) + "\n", encoding="utf-8")
