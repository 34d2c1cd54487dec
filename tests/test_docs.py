"""The documents say what is so: their examples run, and the names that they mention exist."""

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dcarray.lowering.gpu import devices

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("dcarray", "ir", "lowering", "comm", "tests", "benchmarks", "conformance", "examples")
FILES = [p for top in FOLDERS for p in (ROOT / top).rglob("*") if "__pycache__" not in p.parts]
# Files that a reader makes, or that a command writes, and modules that are not ours.
MADE_UP = ("out/", "~/", "/", "test/", "plate", "mine", "script", "kernel.", "gemm", "PREFIX", "NAME")
# Pages with dotted names that are no modules.
OF_THE_USER = {"conformance", "accelerate-and-run", "adding-a-function", "language", "programs", "stap"}
FOREIGN = {"np", "numpy", "dc", "sys", "os", "math", "scipy", "threadpoolctl", "matplotlib", "llvm"}
PAGES = [page for page in DOCUMENTS if "```{code-cell}" in page.read_text() or page.stem == "README"]
if "opencl" in devices.missing():
    PAGES = [page for page in PAGES if page.stem != "devices"]


# A cell of a page, or a block of README, and the block of what it prints.
CELL = re.compile(
    r"^```(?:\{code-cell\} )?python\n(?P<code>.*?)^```\n(?:\n```output\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
MARK = "==== the next cell"


def cells(page: Path) -> list[re.Match[str]]:
    """The cells of a page; of README all blocks of Python."""
    found = CELL.finditer(page.read_text())
    return [cell for cell in found if page.stem == "README" or cell[0].startswith("```{")]


def printed(page: Path, folder: Path) -> list[str]:
    """What each cell of a page prints."""
    codes = [re.sub(r"^:.*\n", "", cell["code"], flags=re.MULTILINE) for cell in cells(page)]
    name = page.stem.lower().replace("-", "_")
    program = folder / f"{name}.py"  # loops are compiled from source, which is a file's
    program.write_text(f"print({MARK!r})\n".join(codes))
    environment = os.environ | {"DCARRAY_CACHE_DIR": str(folder / "cache"), "DCARRAY_THREADS": "2"}
    command = [sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    places = re.compile(rf"[^\s(]*{re.escape(folder.name)}/")
    return [places.sub("", text) for text in done.stdout.split(f"{MARK}\n")]


def shape(text: str, lines: int | None = None) -> list[str]:
    """The lines of an output without its numbers, which differ from run to run, and its spaces."""
    found = [re.sub(r"\d[\d,.]*(?:e[+-]?\d+)?", "#", line) for line in text.splitlines()]
    return [" ".join(line.split()) for line in found if line.strip()][:lines]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_cells_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """The last line of a block may be ``...``; a block that begins with it is not compared."""
    for cell, text in zip(cells(page), printed(page, tmp_path), strict=True):
        shown = shape(cell["shown"] or "")
        if shown[-1:] == ["..."]:
            shown = shown[:-1]
            assert shape(text, len(shown)) == shown, REWRITE
        else:
            assert shape(text) == shown, REWRITE


REWRITE = "python tests/test_docs.py writes the outputs into the pages"


def rewrite(page: Path) -> None:
    """Put what cells print into a page; a block that ends with ``...`` keeps its number of lines."""
    text, end, parts = page.read_text(), 0, []
    with tempfile.TemporaryDirectory() as folder:
        for cell, out in zip(cells(page), printed(page, Path(folder)), strict=True):
            code = text[end : cell.end("code")] + "```\n"
            shown = (cell["shown"] or "").splitlines()
            if shown[-1:] == ["..."]:
                out = "\n".join([*out.splitlines()[: len(shown) - 1], "..."])
            block = f"\n```output\n{out.rstrip()}\n```\n" if out.strip() else ""
            parts.append(code + block)
            end = cell.end()
    page.write_text("".join(parts) + text[end:])


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 165


def test_links_between_documents_lead_somewhere() -> None:
    for page in DOCUMENTS:
        text = page.read_text()
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        links += [f"{name}.md" for name in re.findall(r"\{doc\}`([\w-]+)`", text)]
        for link in links:
            assert (page.parent / link).exists(), f"{page.name}: {link}"
        for name, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
            assert place in headings(page.parent / name if name else page), f"{page.name}: {name}#{place}"


def headings(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def quoted(page: Path) -> set[str]:
    """What stands between single backticks on a page, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {found for found in re.findall(r"`([^`\n]+)`", text) if not found.startswith(MADE_UP)}


@pytest.mark.parametrize("page", DOCUMENTS, ids=[page.stem for page in DOCUMENTS])
def test_paths_exist(page: Path) -> None:
    """A path may leave out the folders that it begins with, and the ending of a Python file."""
    known = [f"/{path.relative_to(ROOT)}" for path in FILES] + ["/pyproject.toml", "/Makefile", "/README.md"]
    known += [f"/docs/{path.name}" for path in (ROOT / "docs").iterdir()]
    for name in quoted(page):
        folder = re.fullmatch(r"(?:[a-z]\w*/)+(?:[a-z]\w*)?", name)
        if name.rstrip("/") in FOLDERS:
            continue
        if folder or re.fullmatch(r"[\w./-]+\.(?:py|pyi|c|h|md|svg|json)", name):
            path = name.rstrip("/")
            assert any(one.endswith((f"/{path}", f"/{path}.py")) for one in known), f"{page.name}: {name}"


@pytest.mark.parametrize("page", DOCUMENTS, ids=[page.stem for page in DOCUMENTS])
def test_modules_have_what_is_mentioned(page: Path) -> None:
    """In ``module.name`` some file or folder of that name has the word; so has ours every constant."""
    if page.stem in OF_THE_USER:
        return
    modules: dict[str, list[Path]] = {}
    for path in FILES:
        if path.suffix in {".py", ".c", ".h"}:
            for name in {path.stem, path.parent.name}:
                modules.setdefault(name, []).append(path)
    for name in quoted(page):
        found = re.fullmatch(r"(?:dcarray\.)?([a-z_]+(?:\.[a-z_]+)*)\.(?!py|c|h|md|svg|json)(\w+)", name)
        if found and found[1].split(".")[0] not in FOREIGN and found[1].split(".")[-1] in modules:
            texts = [path.read_text() for path in modules[found[1].split(".")[-1]]]
            has = any(re.search(rf"\b{found[2]}\b", text) for text in texts) or found[2] in modules
            assert has, f"{page.name}: {name}"


def test_constants_of_the_policy_exist() -> None:
    text = "".join(path.read_text() for path in FILES if path.suffix == ".py" and "tests" not in path.parts)
    for name in quoted(ROOT / "docs" / "policy.md"):
        if re.fullmatch(r"_?[A-Z][A-Z_]+", name):
            assert re.search(rf"\b{name}\b", text), name


def test_packages_of_the_design_exist() -> None:
    """Each name in the first column of the tables of packages is a file or a folder there."""
    text = (ROOT / "docs" / "design.md").read_text()
    for folder, rows in re.findall(r"^\| `(\w+)/` \| \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE):
        for row in rows.splitlines():
            for name in re.findall(r"`([\w/]+)`", row.split("|")[1]):
                place = ROOT / folder / name
                assert place.is_dir() or place.with_suffix(".py").exists(), f"{folder}/{name}"


def test_documented_parameters_are_those_of_the_function() -> None:
    for path in FILES:
        if path.suffix != ".py" or path.relative_to(ROOT).parts[0] not in FOLDERS[:4]:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.args.kwarg:
                continue
            text = ast.get_docstring(node) or ""
            section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w.*\n---|\Z)", text, re.MULTILINE | re.DOTALL)
            heads = re.findall(r"^(\S[^:\n]*)", section[1], re.MULTILINE) if section else []
            has = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            has |= {node.args.vararg.arg} if node.args.vararg else set()
            told = {name.strip().lstrip("*") for head in heads for name in head.split(",")}
            assert told <= has, f"{path.relative_to(ROOT)}, {node.name}: {told - has}"


if __name__ == "__main__":
    for given in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        rewrite(given)
