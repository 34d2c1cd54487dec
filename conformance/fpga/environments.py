"""Separate Python environments for tools from PyPI that are large or must not affect other programs."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

__all__ = ["folder_of", "install", "is_installed"]


def folder_of(name: str) -> Path:
    """Return the folder of an environment, which may not exist.

    It is in the folder that the variable ``DCARRAY_FPGA_TOOLS`` names, or in the user's cache folder.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("DCARRAY_FPGA_TOOLS") or Path(caches, "dcarray-fpga"), name)


def is_installed(name: str) -> bool:
    """Whether an environment is completely installed."""
    return (folder_of(name) / "installed").exists()


def install(name: str, packages: Sequence[str], files: dict[str, str] | None = None) -> None:
    """Create an environment with packages unless it exists; ``files`` maps paths in its folder to texts."""
    if is_installed(name):
        return
    folder = folder_of(name)
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
    subprocess.run(pip, check=True)
    for place, text in (files or {}).items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text(text)
    (folder / "installed").touch()
