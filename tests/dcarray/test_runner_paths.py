"""``python -m dcarray run``: which file runs, and where it imports from."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("DCARRAY_")}


@pytest.mark.parametrize(("path", "arguments"), [
    ("", ["link/../show.py"]), ("", ["./show.py"]), ("", ["./real/../show.py"]), ("", ["real/../."]),
    ("real", ["real/show.py"]), ("", ["real"]), ("real", ["show.py"]), ("", ["linked.py"]),
    ("real/sub", ["-m", "show"]),
])  # fmt: skip
def test_which_program_runs_and_where_it_imports(
    path: str, arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As of a path through a link; also where a module of the program has the name of one of Python's."""
    inner = tmp_path / "real" / "sub"
    inner.mkdir(parents=True)
    for folder in (tmp_path, inner.parent):
        for name in ("show.py", "__main__.py"):
            (folder / name).write_text("import sys, token; print(__file__, token.__file__, sys.path[:3])")
    for folder in (inner, inner.parent):
        (folder / "token.py").write_text("print('its own')")
    (tmp_path / "link").symlink_to(inner)
    (tmp_path / "linked.py").symlink_to("real/show.py")
    search = ENVIRONMENT.get("PYTHONPATH", "")
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path / path}{os.pathsep}{search}" if path else search}
    both = []
    for way in ((), ("-m", "dcarray", "run")):
        subprocess.run([sys.executable, *way, *arguments], cwd=tmp_path, env=environment, check=True)
        both.append(capfd.readouterr())
    assert both[0] == both[1]


def _python(*arguments: str) -> Any:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=ENVIRONMENT)


def test_a_deleted_working_folder(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text(
        "import os, sys, tempfile\nfolder = tempfile.mkdtemp()\nos.chdir(folder)\nos.rmdir(folder)\n"
        "if len(sys.argv) > 1: os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
        "print(sys.path)\nexec('1 / 0')\n"
    )
    script = str(tmp_path / "gone.py")
    for before in ([], [script]):
        ours = _python(*before, "-m", "dcarray", "run", script)
        plain = _python(*before, script)
        assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
