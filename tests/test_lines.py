"""The lines of each folder: no more than a cap, which goes down; only a new capability may raise it.

``python tests/test_lines.py`` lowers the caps in ``lines.txt`` to the lines that there are, rounded up.
"""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CAPS = Path(__file__).with_name("lines.txt")
KINDS = {".c", ".cpp", ".h", ".mk", ".py", ".pyi", ".tcl"}
STEP = 100


def caps() -> dict[str, int]:
    """The caps, by folder."""
    return {folder: int(cap) for folder, cap in map(str.split, CAPS.read_text().splitlines())}


def lines(folder: str) -> int:
    """The lines of a folder's source files that git knows."""
    command = ["git", "ls-files", "-z", "--", folder]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    paths = [ROOT / name for name in files if Path(name).suffix in KINDS]
    return sum(path.read_bytes().count(b"\n") for path in paths if path.exists())


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says which files there are")
@pytest.mark.parametrize("folder", caps())
def test_a_folder_has_no_more_lines_than_its_cap(folder: str) -> None:
    found, cap = lines(folder), caps()[folder]
    assert found <= cap, f"{folder}: {found} lines, {found - cap} more than its cap; delete or merge as many"
    if found + STEP <= cap:
        print(f"{folder}: {found} lines, far below its cap of {cap}: python tests/test_lines.py lowers it")


def main() -> None:
    """Lower the caps."""
    lowered = {folder: min(cap, -(-lines(folder) // STEP) * STEP) for folder, cap in caps().items()}
    CAPS.write_text("".join(f"{folder} {cap}\n" for folder, cap in lowered.items()))
    print(CAPS.read_text(), end="")


if __name__ == "__main__":
    main()


def test_long_tests_are_there() -> None:
    """Of those that `long.txt` names, CI runs half."""
    for name in (ROOT / "tests" / "long.txt").read_text().split():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(), name
