"""What a wheel carries is what an editable install sees."""

import os
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dcarray as dc
from conformance.release import versions, wheels

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = {"dcarray": "dcarray", "dcarray.ir": "ir", "dcarray.lowering": "lowering", "dcarray.comm": "comm"}


def test_every_package_folder_is_listed() -> None:
    found = set()
    for package, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT / folder).parts
            if package == "dcarray" and parts and parts[0] in FOLDERS.values():
                continue  # a symlink to a folder that has its own entry
            found.add(".".join((package, *parts)))
    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_module_lies_in_a_package() -> None:
    for folder in FOLDERS.values():
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_the_package_mapping_is_the_design() -> None:
    assert PROJECT["tool"]["setuptools"]["package-dir"] == FOLDERS


@pytest.mark.parametrize("layer", ["ir", "lowering", "comm"])
def test_symlinks_show_the_layers_to_type_checkers(layer: str) -> None:
    link = ROOT / "dcarray" / layer
    assert link.is_symlink()
    assert os.readlink(link) == f"../{layer}"


def test_types_are_published() -> None:
    assert (ROOT / "dcarray" / "py.typed").exists()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["dcarray"]


def test_a_source_distribution_has_all_of_the_c_module() -> None:
    (module,) = PROJECT["tool"]["setuptools"]["ext-modules"]
    there = {f"dcarray/_native/{path.name}" for path in (ROOT / "dcarray" / "_native").glob("*.[ch]")}
    assert there == {*module["sources"], *module["depends"]}


def test_extras() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert {"cuda", "opencl", "mpi", "bench", "demo", "test", "c"} <= set(extras)


def test_submodules_do_not_hide_numpys_names() -> None:
    for path in (ROOT / "dcarray").glob("*.py"):
        if callable(getattr(np, path.stem, None)):
            assert callable(getattr(dc, path.stem)), path.stem


def test_every_file_of_a_package_is_published() -> None:
    known = set(wheels.needed(ROOT))
    for folder in FOLDERS.values():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.resolve() == path and path.suffix not in {".pyc", ".so"}:
                assert path.relative_to(ROOT) in known, path


def test_versions_are_the_same_everywhere() -> None:
    """Those of Python in the classifiers, the Makefile and what public hosts run; that of the package."""
    ours, makefile = PROJECT["project"], (ROOT / "Makefile").read_text()
    of_python = [found[1] for one in ours["classifiers"] if (found := re.search(r":: (3\.\d+)$", one))]
    assert ours["requires-python"] == f">={of_python[0]}"
    (tested,) = re.findall(r"^PYTHONS \?= (.*)$", makefile, re.MULTILINE)
    assert [one for one in tested.split() if "/" not in one] == of_python[1:]
    assert f"WHEELS ?= {' '.join(of_python)}\n" in makefile
    hosts = ROOT / ".github" / "workflows"
    assert re.findall(r"3\.\d+", (hosts / "test.yml").read_text().partition("matrix:")[2]) == of_python[1:]
    assert set(re.findall(r"3\.\d+", (hosts / "wheels.yml").read_text())) == set(of_python)
    assert f"\nversion: {ours['version']}\n" in (ROOT / "CITATION.cff").read_text()
    heading = rf"^## \[{re.escape(ours['version'])}\] - \d{{4}}-\d\d-\d\d$|^## \[Unreleased\]$"
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_tests_of_other_versions_exist() -> None:
    assert not [name for name in versions.TESTS if not (ROOT / name).is_file()]


def test_files_about_the_project_name_what_there_is() -> None:
    """Commands of make, groups of packages and links; what has never run says so."""
    makefile = (ROOT / "Makefile").read_text()
    asked = set()
    pages = [*ROOT.glob("*.md"), ROOT / "docs" / "support.md", *(ROOT / ".github").rglob("*.yml")]
    for page in pages:
        text = page.read_text()
        asked |= set(re.findall(r"(?:`|run: |^)make ([a-z-]+)", text, re.MULTILINE))
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
        if page.parent.name == "workflows":
            assert text.startswith("# This file has never run"), page
        if page.parent.name == "ISSUE_TEMPLATE":
            assert "What `python -m dcarray info` prints" in text, page
    assert asked <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for group in PROJECT["dependency-groups"]:
        users = [makefile, *(path.read_text() for path in (ROOT / "conformance" / "release").glob("*.py"))]
        assert any(re.search(rf"--group {group}\b|pyproject\.toml:{group}\b", text) for text in users), group
