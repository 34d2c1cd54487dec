"""NPBench on a device, by a suite of two tiny benchmarks, of which one fails."""

from pathlib import Path

import pytest
import tiny_npbench
from devices import needs_opencl

from conformance import devices


@needs_opencl
def test_a_suite_on_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite, document = tiny_npbench.written(tmp_path), tmp_path / "conformance.md"
    assert devices.main(["--npbench", str(suite), "--docs", str(document)]) == 1
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "WRONG" in lines["broken"] and "not today" in lines["broken"]
    _, verdict, kernels, on_host = lines["halve"].split()
    assert verdict == "right" and int(kernels) > 0 and int(on_host) == 0
    assert "1 of 2 right; 1 with kernels on the device" in document.read_text()
