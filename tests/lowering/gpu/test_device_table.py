"""The table of devices: names, and why there is none; the runtimes that OpenCL's loader finds."""

import importlib.util
import os
from pathlib import Path

import pytest
from devices import needs_opencl
from fresh import python

from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.opencl import vendors

# A process in which nothing of OpenCL has been asked for.
FRESH = "from dcarray.lowering.gpu import devices; print(devices.find(), devices.missing()['opencl'])"


def _process(code: str, **environment: str) -> str:
    done = python("-c", code, **environment)
    return done.stdout


@pytest.mark.parametrize("name", ["cpu", "opencl:99", "cuda:99", "auto", "", "opencl:", ":0", None, 0])
def test_a_name_that_is_not_there_names_those_that_are(name: object) -> None:
    with pytest.raises(ValueError, match="the devices there are: cpu") as error:
        devices.get(name)
    assert all(one.name in str(error.value) for one in devices.find())
    assert repr(name) in str(error.value)


def test_a_kind_is_there_or_has_a_reason() -> None:
    kinds = {one.name.partition(":")[0] for one in devices.find()}
    assert kinds | set(devices.missing()) == set(devices.KINDS)
    assert not kinds & set(devices.missing())
    for kind, reason in devices.missing().items():
        with pytest.raises(ValueError) as error:
            devices.get(f"{kind}:0")
        assert reason in str(error.value)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_the_command_that_installs_it_is_said() -> None:
    assert "pip install 'dcarray[cuda]'" in devices.missing()["cuda"]
    assert "driver" in devices.missing()["cuda"]


def test_without_pyopencl_the_command_that_installs_it_is_said() -> None:
    said = _process("import sys; sys.modules['pyopencl'] = None; " + FRESH)
    assert (
        "opencl:" not in said.partition("]")[0]
        and "pyopencl" in said
        and "pip install 'dcarray[opencl]'" in said
    )


@needs_opencl
def test_without_a_runtime_the_command_that_installs_it_is_said(tmp_path: Path) -> None:
    hidden = "from dcarray.lowering.gpu.opencl import vendors; vendors.wheel_runtime = lambda: None; "
    said = _process(hidden + FRESH, OCL_ICD_VENDORS=str(tmp_path))
    assert said.startswith("[]") and "runtime" in said and "pip install 'dcarray[opencl]'" in said


@needs_opencl
def test_a_runtime_that_cannot_be_loaded_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "broken.icd").write_text(str(tmp_path / "nothing.so"))
    hidden = "from dcarray.lowering.gpu.opencl import vendors; vendors.wheel_runtime = lambda: None; "
    assert _process(hidden + FRESH, OCL_ICD_VENDORS=str(tmp_path)).startswith("[]")


LIBRARY = vendors.wheel_runtime()
needs_wheel = pytest.mark.skipif(LIBRARY is None, reason="the wheel intel-opencl-rt is not installed")


@needs_opencl
@needs_wheel
@pytest.mark.parametrize("setting", ["folder", "file", "library", "broken", "empty"])
def test_a_runtime_is_found_once_whatever_the_setting(tmp_path: Path, setting: str) -> None:
    own = tmp_path / "own.icd"
    own.write_text("/nowhere/libnothing.so\n" if setting == "broken" else f"{LIBRARY}\n")
    value = {"file": str(own), "library": str(LIBRARY), "empty": ""}.get(setting, str(tmp_path))
    code = (
        "import os\nfrom dcarray.lowering.gpu import devices\nnames = [one.name for one in devices.find()]\n"
        "import pyopencl\nprint(names, len(pyopencl.get_platforms()), os.environ['OCL_ICD_VENDORS'])"
    )
    names, platforms, after = _process(code, OCL_ICD_VENDORS=value).rstrip("\n").rsplit(" ", 2)
    assert names == "['opencl:0']" and platforms == "1"
    assert after == value


@needs_wheel
def test_the_loader_sees_the_wheel_beside_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.icd").write_text("libmine.so\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    with vendors.wheel_runtime_added():
        seen = Path(os.environ["OCL_ICD_VENDORS"])
        assert sorted(file.read_text().strip() for file in seen.iterdir()) == [str(LIBRARY), "libmine.so"]
    assert os.environ["OCL_ICD_VENDORS"] == str(tmp_path) and not seen.exists()
    monkeypatch.delenv("OCL_ICD_VENDORS")
    with vendors.wheel_runtime_added():
        pass
    assert "OCL_ICD_VENDORS" not in os.environ
