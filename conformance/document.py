"""The writer of sections of ``docs/conformance.md``: each command here writes its own results."""

from __future__ import annotations

from pathlib import Path

from benchmarks import document

__all__ = ["HEAD", "write_section"]

HEAD = """\
# Conformance

NumPy's functions one by one, other people's tests, and random programs on wrapped arrays.  Each section was
written by the command that it names, and is written anew by the next run of it with `--docs`."""


def write_section(file: Path, title: str, body: str) -> None:
    """Replace a section of a document, or append it; see `benchmarks.document.write_section`."""
    document.write_section(file, title, body, HEAD)
