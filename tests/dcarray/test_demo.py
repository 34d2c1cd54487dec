"""The demo on a small grid, and the command line."""

import sys
from pathlib import Path

import pytest
from fresh import python
from made_up_device import MadeUpDevice, make_up

from dcarray.__main__ import main

pytest.importorskip("matplotlib")


def test_demo_agrees_and_writes_its_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path), "--factor", "1", "--rounds", "1"]) == 0
    said = capsys.readouterr().out
    assert "DISAGREE" not in said
    for expected in ("largest difference", "kernels", "bytes moved", "saved", "x as fast"):
        assert expected in said
    assert (tmp_path / "terrain.png").stat().st_size > 10_000


def test_demo_on_a_device(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = MadeUpDevice(target="made-up")
    make_up(monkeypatch, device)
    given = ["demo", "--out", str(tmp_path), "--factor", "1", "--rounds", "1", "--device", "made-up:0"]
    assert main(given) == 0
    assert "DISAGREE" not in capsys.readouterr().out and device.runs > 10
    with pytest.raises(SystemExit):
        main(["demo", "--device", "made-up:3"])
    assert "no device 'made-up:3'" in capsys.readouterr().err


def test_terrain_does_not_know_dcarray() -> None:
    source = Path(sys.modules["dcarray.demo"].__file__ or "").with_name("terrain.py").read_text()
    assert "import dcarray" not in source
    assert "from ." not in source


def test_info_and_usage() -> None:
    done = python("-m", "dcarray", "info")
    assert "numpy" in done.stdout
    bad = python("-m", "dcarray", "nonsense", status=None)
    assert bad.returncode == 2
    assert "cache,compile,demo,doctor,export,hints,info,run" in bad.stderr
    with pytest.raises(SystemExit):
        main(["demo", "--factor", "0"])
