"""The simulator's findings: read from its log, and there for kernels with mistakes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from devices import needs_opencl

from conformance import oclgrind

ROOT = Path(__file__).resolve().parents[2]
needs_oclgrind = pytest.mark.skipif(shutil.which("oclgrind") is None, reason="Oclgrind is not installed")

LOG = """
Invalid read of size 8 at global memory address 0x2000000000040
    Kernel: phase0
    Entity: Global(8,0,0) Local(8,0,0) Group(0,0,0)
      %0 = load double, double addrspace(1)* %arrayidx, align 8
    At line 7 (column 12) of input.cl:
      x[i] = a[i + 1];

Invalid read of size 8 at global memory address 0x2000000000048
    Kernel: phase0
    Entity: Global(9,0,0) Local(9,0,0) Group(0,0,0)
      %0 = load double, double addrspace(1)* %arrayidx, align 8
    At line 7 (column 12) of input.cl:
      x[i] = a[i + 1];

Write-write data race at local memory address 0x1000000000008
    Kernel: phase1
    #
    First entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
    At line 9 (column 1) of input.cl:
      s[0] = i;
    #
    Second entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
    At line 9 (column 1) of input.cl:
      s[0] = i;
""".replace("    #", "    ").replace("    ", "\t")


def test_findings_are_counted_by_place() -> None:
    assert oclgrind.findings(LOG) == {
        "Invalid read of size 8 at global memory; phase0; x[i] = a[i + 1];": 2,
        "Write-write data race at local memory; phase1; s[0] = i;": 1,
    }
    assert not oclgrind.findings("") and not oclgrind.findings("\n\n")


PROGRAM = """
import numpy as np, pyopencl as cl
from dcarray.lowering.gpu import devices

one = devices.get("opencl:0")
assert [d.name for d in devices.find() if d.name.startswith("opencl")] == ["opencl:0"]
assert "Oclgrind" in one.description
text = '''{}'''
buffer = one.allocate(64 * 8)
one.upload(np.arange(64.0), buffer)
cl.Kernel(cl.Program(one.context, text).build(), "f")(one.queue, (64,), (16,), buffer)
one.synchronise()
"""
KERNELS = {
    "right": ("a[i] = a[i] + s[l];", ""),
    "out of bounds": ("a[i + 1] = s[l];", "Invalid write of size 8"),
    "race": ("a[i] = s[(l + 1) % 16];", "data race"),
    "divergent barrier": ("if (l == 3) barrier(CLK_LOCAL_MEM_FENCE); a[i] = s[l];", "divergence"),
}


@needs_opencl
@needs_oclgrind
@pytest.mark.parametrize("kind", KERNELS)
def test_mistakes_in_kernels_are_found(kind: str, tmp_path: Path) -> None:
    line, expected = KERNELS[kind]
    head = "kernel void f(global double *a) {\nint i = get_global_id(0), l = get_local_id(0);"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(f"{head}\nlocal double s[16]; s[l] = 2 * l;\n{line}\n}}"))
    status, found, output = oclgrind.run([sys.executable, str(program)], str(tmp_path))
    assert status == 0, output
    if expected:
        assert any(expected in finding for finding in found), found
    else:
        assert not found


@needs_opencl
@needs_oclgrind
def test_the_command_fails_for_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = tmp_path / "test_one.py"
    body = "".join(f"    {line}\n" for line in PROGRAM.splitlines())
    racy = "kernel void f(global double *a) {{ a[0] = get_global_id(0); }}"
    for text, status in ((racy, 1), (racy.replace("a[0]", "a[get_global_id(0)]"), 0)):
        test.write_text(f"def test_it():\n{body}".format(text.format()))
        assert oclgrind.main([str(test), "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]) == status
        printed = capsys.readouterr().out
        assert "1 passed" in printed or printed.startswith("."), printed
        assert ("data race" in printed) == bool(status)


@needs_opencl
@needs_oclgrind
def test_generated_kernels_make_no_mistakes(tmp_path: Path) -> None:
    tests = [
        str(ROOT / "tests/lowering/gpu"),
        "-k",
        "opencl and not test_opencl_ops",
        "-p",
        "no:cacheprovider",
    ]
    status, found, output = oclgrind.run([sys.executable, "-m", "pytest", "-q", *tests], str(tmp_path))
    assert not found, found
    assert status == 0, output


def test_without_the_simulator_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert oclgrind.main([]) == 2
    assert "apt-get install oclgrind" in capsys.readouterr().err
