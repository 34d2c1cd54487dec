"""Plans that travel: exports of the cache folder, imports, and a shared folder that is only read."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dcarray as dc
from dcarray.inspect import cache_command
from dcarray.lowering.runtime.disk import DiskCache
from dcarray.plans import disk_store, server
from dcarray.plans.log_requests import LogRequest

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX files")

PROGRAM = """
import numpy as np, dcarray as dc
x = dc.asarray(np.arange(1_000_000.0))
for _ in range(3):
    float((np.sqrt(x) * 2 + np.exp(-x)).sum())
    dc.wait()
print(dc.report())
"""
KEYS = "a" * 64, "b" * 64


def report(folder: Path, **variables: str) -> tuple[int, int]:
    """Kernels that a process compiled, and that it found in a cache folder."""
    variables = {**os.environ, "DCARRAY_CACHE_DIR": str(folder), "DCARRAY_JIT": "eager", **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=variables, check=True
    )
    lines = {line.rsplit(None, 1)[0].strip(): line.split()[-1] for line in done.stdout.splitlines()[1:]}
    return int(lines["kernels compiled"]), int(lines["kernels found in the cache folder"])


def command(folder: Path, *words: object) -> int:
    with dc.options(cache_dir=folder):
        return cache_command.main([str(word) for word in words])


def filled(folder: Path) -> Path:
    """A cache folder with a kernel, and bytes in place of a plan."""
    DiskCache(str(folder)).write(KEYS[0], b"kernel")
    DiskCache(str(folder / "plans")).write(KEYS[1], b"plan")
    return folder


def test_a_process_finds_what_was_imported_or_is_shared(tmp_path: Path) -> None:
    file, shared = tmp_path / "file", tmp_path / "shared"
    compiled, found = report(tmp_path / "first")
    assert compiled > 0 and found == 0
    assert command(tmp_path / "first", "export", file) == 0
    assert command(tmp_path / "second", "import", file) == 0
    assert report(tmp_path / "second") == (0, compiled)
    assert command(tmp_path / "third", "import", file, "--into", shared) == 0
    before = sorted((path, path.stat().st_mtime_ns) for path in shared.rglob("*"))
    assert report(tmp_path / "third", DCARRAY_CACHE_SHARED=str(shared)) == (0, compiled)
    assert sorted((path, path.stat().st_mtime_ns) for path in shared.rglob("*")) == before
    assert report(tmp_path / "fourth")[0] == compiled  # and without it as in the beginning
    shared.chmod(0o777)
    assert report(tmp_path / "fifth", DCARRAY_CACHE_SHARED=str(shared)) == (compiled, 0)


def test_plans_travel_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = (("old", "d", (5,), None, 0), ("new", "d", (5,), 1),
           ("map", "negative", "d->d", (5,), 1, None, (0, None, None)))  # fmt: skip
    request = LogRequest(log, (1,), "", (5, 5, 5), (5, 5, 5), (), False, 1, str(tmp_path / "first"))
    disk_store.save(request, server.answer(request)[1])
    assert command(tmp_path / "first", "export", tmp_path / "file") == 0
    assert command(tmp_path / "second", "import", tmp_path / "file", "--into", tmp_path / "shared") == 0
    elsewhere = request._replace(cache_dir=str(tmp_path / "third"))
    assert disk_store.load_plan(elsewhere) is None
    monkeypatch.setenv("DCARRAY_CACHE_SHARED", str(tmp_path / "shared"))
    found = disk_store.load_plan(elsewhere)
    assert found is not None and found.kernels == 1
    assert disk_store.load_plan(elsewhere._replace(fastmath=True)) is None


def test_one_file_for_several_machines(tmp_path, monkeypatch, capsys) -> None:
    file = tmp_path / "file"
    assert command(filled(tmp_path / "first"), "export", file) == 0
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(cache_command, "machine_fingerprint", lambda: "f" * 16)
        assert command(tmp_path / "second", "import", file) == 1
        assert "for this machine" in (text := capsys.readouterr().err) and "here 'ffffffffffffffff'" in text
        assert not (tmp_path / "second").exists()
        DiskCache(str(tmp_path / "second")).write("c" * 64, b"other")
        assert command(tmp_path / "second", "export", file) == 1
        assert "--add" in capsys.readouterr().err
        assert command(tmp_path / "second", "export", file, "--add") == 0
    assert "for 2 kinds" in capsys.readouterr().out
    assert command(tmp_path / "third", "import", file) == 0
    names = sorted(path.stem for path in (tmp_path / "third").rglob("*.dcarray"))
    assert names == [*KEYS]  # not the other machine's
    assert command(tmp_path / "third", "import", file, "--into", tmp_path / "all") == 0
    assert DiskCache(str(tmp_path / "all")).read("c" * 64) == b"other"
    assert command(tmp_path / "third", "clear") == 0 and not [*(tmp_path / "third").rglob("*.dcarray")]


@pytest.mark.parametrize("wrong", ["short", "text", "path", "entry", "about", "mode", "missing"])
def test_files_that_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    file = tmp_path / "file"
    assert command(filled(tmp_path / "first"), "export", file) == 0
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    section = next(iter(members)).split("/")[0]
    if wrong == "short":
        file.write_bytes(file.read_bytes()[:-30])
    elif wrong == "text":
        file.write_text("import os")
    elif wrong == "mode":
        file.chmod(0o666)
    elif wrong == "missing":
        file.unlink()
    else:
        if wrong == "path":
            members["../../x"] = b""
        elif wrong == "entry":
            members[f"{section}/{KEYS[0]}"] = members[f"{section}/plans/{KEYS[1]}"]
        else:
            members[f"{section}/about.json"] = members[f"{section}/about.json"].replace(b"NumPy", b"numpy")
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    assert command(tmp_path / "second", "import", file) == 1
    expected = {"path": "no export", "mode": "no other user may write", "missing": "No such file"}
    assert f"{file}: " in (text := capsys.readouterr().err) and expected.get(wrong, "damaged") in text
    assert not (tmp_path / "second").exists()


def test_a_folder_to_which_others_may_write_takes_nothing(tmp_path: Path, capsys) -> None:
    assert command(filled(tmp_path / "first"), "export", tmp_path / "file") == 0
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="may write to it"):
        assert command(tmp_path / "open", "import", tmp_path / "file") == 1
    assert "others may write to it" in capsys.readouterr().err
    assert command(tmp_path / "empty", "export", tmp_path / "other") == 1
    assert "nothing to export" in capsys.readouterr().err
