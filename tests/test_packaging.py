"""What a wheel carries is what an editable install sees."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dcarray as dc

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
