"""The examples of the documents run: the cells of each page in order, and the Python blocks of README."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from devices import needs_opencl

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(p for p in (ROOT / "docs").glob("*.md") if "```{code-cell}" in p.read_text())


def cells(page: Path) -> str:
    """The code of a page."""
    found = re.findall(r"^```\{code-cell\} python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return "\n".join(re.sub(r"^:.*\n", "", cell, flags=re.MULTILINE) for cell in found)


def test_there_are_pages() -> None:
    assert {"getting-started", "laziness", "sharp-bits", "seeing"} <= {page.stem for page in PAGES}


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=needs_opencl) if p.stem == "devices" else p for p in PAGES],
    ids=[page.stem for page in PAGES],
)
def test_cells_run(page: Path, tmp_path: Path) -> None:
    program = (
        tmp_path / f"{page.stem.replace('-', '_')}.py"
    )  # loops are compiled from source, which is a file's
    program.write_text(cells(page))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_readme(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    program = tmp_path / "readme.py"
    program.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "dcarray report" in done.stdout


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text()
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        links += [f"{name}.md" for name in re.findall(r"\{doc\}`([\w-]+)`", text)]
        for link in links:
            assert (page.parent / link).exists(), f"{page.name}: {link}"
