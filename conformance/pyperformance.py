"""Runs the programs of the package pyperformance as whole processes: ``python -m conformance.pyperformance``.

The package and what its programs need are installed by name in an environment of their own.  A stand-in for
pyperf calls each benchmark a few times and prints its results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .packages.catalogue import Package
from .packages.environments import Environment, environment_of
from .processes import Command, judge

__all__ = ["STANDIN", "commands", "main"]

STANDIN = Path(__file__).with_name("pyperf_standin")
_LEFT_OUT = {
    "hg_startup": "it starts Mercurial, which is not run accelerated",
    "python_startup": "it starts Python, which is not run accelerated",
    "python_startup_no_site": "it starts Python, which is not run accelerated",
}


def _lacking(environment: Environment, folder: Path, needed: list[str]) -> str:
    """Install what a program needs, once, and return the reason if it cannot be installed."""
    file = environment.site_packages.parents[2] / "requirements.json"
    known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    if folder.name not in known:
        pip = [str(environment.python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = (
            subprocess.run([*pip, *needed], capture_output=True, text=True, check=False) if needed else None
        )
        known[folder.name] = done.stderr.strip().splitlines()[-1] if done and done.returncode else ""
        file.write_text(json.dumps(known))
    return known[folder.name]


def commands(options: argparse.Namespace) -> Iterator[Command]:
    """Return the programs, after installing what they need."""
    environment = environment_of(Package("pyperformance"))
    root = environment.site_packages / "pyperformance" / "data-files" / "benchmarks"
    for folder in sorted(root.glob("bm_*")):
        files = [folder / "pyproject.toml", *sorted(folder.glob("bm_*.toml"))]
        base, *others = (tomllib.loads(file.read_text()) for file in files)
        requirements = folder / "requirements.txt"
        needed = [one for one in base["project"].get("dependencies", []) if one != "pyperf"]
        needed = ["-r", str(requirements)] if requirements.exists() and needed else needed
        for one in (base, *others):
            found = base["tool"]["pyperformance"] | one["tool"]["pyperformance"]
            name = found["name"]
            if options.names and not any(word in name for word in options.names):
                continue  # nothing is installed for it
            given = (str(folder / "run_benchmark.py"), *map(str, found.get("extra_opts", [])))
            why = _LEFT_OUT.get(name) or _lacking(environment, folder, needed)
            yield Command(
                name, given, folder, None, {"PYTHONPATH": str(STANDIN)}, str(environment.python), why
            )


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return judge(
        "conformance.pyperformance",
        "pyperformance",
        "The programs of the package pyperformance as whole processes, as they are and under"
        " `python -m dcarray run`; each calls its benchmarks three times.",
        commands, lambda parser: None, arguments,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
