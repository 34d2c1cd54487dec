"""Virtual environments, one for each package, with the present version of NumPy and dcarray's checkout."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
import venv
from importlib.metadata import version
from pathlib import Path

from .catalogue import Package

__all__ = ["CannotRun", "Environment", "environment_of"]

ROOT = Path(__file__).resolve().parents[2]


class CannotRun(Exception):
    """Raised if a package or its tests cannot be installed or run; the message says why."""


class Environment:
    """The virtual environment of one package.

    Attributes
    ----------
    python : Path
        Its interpreter.
    site_packages : Path
        The folder in which the package is installed.
    module : str
        The name by which the package is imported.
    version : str
        The version of the package.
    """

    def __init__(self, folder: Path, package: Package) -> None:
        self.python = folder / "bin" / "python"
        ask = (
            "import json, sys, sysconfig\n"
            "from importlib.metadata import distribution\n"
            "found = distribution(sys.argv[1])\n"
            "tops = sorted({f.parts[0] for f in found.files or () if f.name == '__init__.py'})\n"
            "print(json.dumps([sysconfig.get_path('purelib'), found.version, tops]))"
        )
        done = subprocess.run(
            [self.python, "-c", ask, package.name], capture_output=True, text=True, check=True
        )
        place, self.version, modules = json.loads(done.stdout)
        self.site_packages = Path(place)
        wanted = package.name.lower().replace("-", "_")
        same = [m for m in modules if m.lower() == wanted]
        self.module = package.module or (same or [m for m in modules if "test" not in m] or [""])[0]
        if not self.module:
            raise CannotRun(f"{package.name} {self.version} has no modules in Python")


def environment_of(package: Package) -> Environment:
    """Return the environment of a package, after creating it if it does not exist.

    It is in the folder that the variable ``DCARRAY_PACKAGES`` names, or in the user's cache folder.

    Raises
    ------
    CannotRun
        If the package cannot be installed.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(
        os.environ.get("DCARRAY_PACKAGES") or Path(caches, "dcarray-packages"), package.name.lower()
    )
    wanted = "\n".join(_requirements(package))
    complete = folder / "installed"
    if not complete.exists() or complete.read_text() != wanted:
        _install(folder, package)
        complete.write_text(wanted)
    return Environment(folder, package)


def _requirements(package: Package) -> list[str]:
    """Return what to install: package, its tests' and dcarray's requirements, and the present NumPy."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    others = [need for need in ours if not need.startswith("numpy")]
    return [
        package.name, f"numpy=={version('numpy')}", *others, "pytest", "pytest-timeout", *package.requirements
    ]  # fmt: skip


def _install(folder: Path, package: Package) -> None:
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    # The name alone first: pip's word on that is the clearer one.
    for what in ([package.name], _requirements(package)):
        done = subprocess.run([*pip, "install", "--quiet", *what], capture_output=True, text=True)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
            raise CannotRun(f"{package.name} cannot be installed: {(said or [done.stderr])[-1].strip()}")
    ask = [str(folder / "bin" / "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    Path(place, "dcarray-checkout.pth").write_text(f"{ROOT}\n")
