"""``python -m conformance.borders [names]``: checks that accelerated scripts print what plain ones print.

Each script in ``scripts`` runs as ``python script.py``, as ``python -m dcarray run script.py`` with an empty
cache folder, and the same way again with the cache filled.  The exit status is 1 if an output differs or a
script fails.  Scripts whose libraries are not installed are skipped and marked in the table.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.whole_programs import ACCELERATED, difference, run, scripts_named

from ..numpy_suite import MODES

__all__ = ["SCRIPTS", "compare", "main", "missing"]

SCRIPTS = Path(__file__).with_name("scripts")


def _libraries(script: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def missing(script: Path) -> list[str]:
    """Return the packages that a script imports and that are not installed."""
    return sorted(name for name in set(_libraries(script)) if importlib.util.find_spec(name) is None)


def compare(script: Path, mode: str = "defaults", limit: float = 300.0) -> str:
    """Return text that says how the accelerated output of a script differs, or "" if it does not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        expected = ""
        for way, words in {"plain": (), "accelerated": ACCELERATED, "cached": ACCELERATED}.items():
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                settings = MODES[mode] if words else {}
                found = run(script, words, folder=folder, cache=cache, limit=limit, settings=settings)
            if found.problem:
                return f"{way}: {found.problem}"
            if not words:
                expected = found.output
            elif wrong := difference(expected, found.output):
                return f"{way}: {wrong}"
    return ""


def main(arguments: Sequence[str]) -> int:
    """Run the scripts, print a line for each, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance.borders", description=__doc__)
    parser.add_argument("names", nargs="*", help="only scripts whose name holds one of these words")
    parser.add_argument("--mode", choices=sorted(MODES), default="defaults")
    parser.add_argument("--scripts", type=Path, default=SCRIPTS, metavar="FOLDER", help="other scripts")
    args = parser.parse_args(arguments)
    chosen = scripts_named(args.scripts, args.names)
    if not chosen:
        parser.error(f"no script in {args.scripts} has such a name")
    same = skipped = 0
    for script in chosen:
        absent = missing(script)
        wrong = "" if absent else compare(script, args.mode)
        skipped += bool(absent)
        same += not absent and not wrong
        said = f"skipped: {', '.join(absent)} not installed" if absent else wrong or "the same"
        print(f"{script.stem:<26}{said}", flush=True)
    print(f"{same} of {len(chosen) - skipped} print the same, {skipped} skipped")
    return int(same + skipped < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
