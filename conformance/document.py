"""Sections of ``docs/conformance.md``, each written by the command that measures what it says."""

from __future__ import annotations

from pathlib import Path

from benchmarks import document

__all__ = ["HEAD", "write_section"]

HEAD = """\
# Conformance

NumPy's functions one by one, other people's tests, and random programs on wrapped arrays.  Each section was
written by the command that it names, and is written anew by the next run of it with `--docs`."""


def write_section(file: Path, title: str, body: str) -> None:
    """Replace a section of the document, or add it at the end; see `benchmarks.document.write_section`."""
    document.write_section(file, title, body, HEAD)
