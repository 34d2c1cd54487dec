"""The papers' kernels: their regions mean what they compute, the command runs, and the model adds up."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from benchmarks import scaling
from benchmarks.papers import PROGRAMS, Program
from benchmarks.ranks import launcher
from benchmarks.scaling_counts import region
from dcarray.ir import interp
from dcarray.ir.parse import parse

RETURNED = {"atax": ["y"], "bicg": ["s", "q"], "gesummv": ["y"], "k3mm": ["G"]}
UNDER_MPI = pytest.mark.skipif(
    find_spec("mpi4py") is None or launcher(sys.executable) is None, reason="mpi4py or mpiexec is not there"
)


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    found: Program = request.param
    return found


def small(program: Program) -> dict[str, int]:
    return {name: 3 if name == "T" else max(6, n // 300) for name, n in program.sizes.items()}


def test_regions_and_wrapped_arrays_give_what_the_program_gives(program: Program) -> None:
    sizes = small(program) | ({"T": 2} if "T" in program.sizes else {})
    plain, wrapped, memory = (dict(program.make(sizes)) for _ in range(3))
    want = program.run(plain)
    got = program.run({k: dc.asarray(v) if isinstance(v, np.ndarray) else v for k, v in wrapped.items()})
    memory = {name: value for name, value in memory.items() if isinstance(value, np.ndarray)}
    memory |= interp.run(parse(region(program.name, sizes)), memory)
    names = [*RETURNED.get(program.name, []), *program.writes]
    for name, a, b in zip(names, want, got, strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-12)
        np.testing.assert_allclose(memory[name], a, rtol=1e-12)
        assert np.ptp(a) > 0


@UNDER_MPI
def test_the_command_writes_figures_and_a_section(tmp_path: Path, capsys: Any) -> None:
    docs, figures = tmp_path / "p.md", tmp_path / "s.json"
    docs.write_text("# P\n\n## Else\n\nstays\n")
    words = ["--only", "mvt,jacobi_1d", "--shrink", "100", "--rounds", "1", "--steps", "3", "--warm", "0"]
    outputs = ["--json", str(figures), "--docs", str(docs)]
    assert scaling.main([*words, *outputs]) == 0
    told = json.loads(figures.read_text())
    for name in ("mvt", "jacobi_1d"):
        contenders = told["programs"][name]["scaling"]["contenders"]
        assert {"numpy 1", "dcarray 1", "dcarray 2"} <= contenders.keys()
        assert not [each["wrong"] for each in contenders.values() if "wrong" in each]
        assert told["programs"][name]["model"]["2"]["predicted"] > 0
        assert told["counts"][name]["1296"]["seconds"] > 0
    assert "| mvt |" in docs.read_text()
    assert "stays" in docs.read_text() and "messages between two ranks" in capsys.readouterr().out
    assert scaling.main(["--from", str(figures), "--docs", str(docs)]) == 0
