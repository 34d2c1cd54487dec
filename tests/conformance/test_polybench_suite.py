"""The command that runs PolyBench/Python, on a suite of one kernel of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import polybench

BASE = """\
import numpy
from benchmarks.polybench_classes import ArrayImplementation
from inlineasm import assemble
from pypapi import events as papi_events, papi_high


class PolyBench:
    def __init__(self, options, spec):
        self.N = spec.DataSets[options.POLYBENCH_DATASET_SIZE]
        self.lists = options.POLYBENCH_ARRAY_IMPLEMENTATION == ArrayImplementation.LIST

    def create(self):
        found = [float(i) for i in range(self.N)]
        return found if self.lists else numpy.array(found)
"""
CLASSES = """\
from enum import Enum

ArrayImplementation = Enum("ArrayImplementation", "LIST NUMPY")
DataSetSize = Enum("DataSetSize", "SMALL MEDIUM")


class PolyBenchOptions:
    pass


class Spec:
    Name = "prefix-sum"
    DataSets = {DataSetSize.SMALL: 3000, DataSetSize.MEDIUM: 6000}


class PolyBenchSpecFile:
    def __init__(self, file):
        self.specs = [Spec()]
"""
KERNEL = """\
from benchmarks.polybench import PolyBench
from benchmarks.polybench_classes import ArrayImplementation


class Prefix_sum(PolyBench):
    def __new__(cls, options, spec):
        lists = options.POLYBENCH_ARRAY_IMPLEMENTATION == ArrayImplementation.LIST
        return object.__new__(_StrategyList if lists else _StrategyNumPy)

    def run_benchmark(self):
        A = self.create()
        self.time_kernel(A)
        return [("A", A)]


class _StrategyList(Prefix_sum):
    def kernel(self, A):
        for i in range(1, self.N):
            A[i] = A[i - 1] * 0.5 + A[i]


class _StrategyNumPy(Prefix_sum):
    def kernel(self, A):
        A[1:] = A[1:].cumsum() + A[0]
"""


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DCARRAY_JIT", "eager")  # of the processes: also on a busy machine
    folder = tmp_path / polybench.FOLDER
    (folder / "medley" / "prefix_sum").mkdir(parents=True)
    (folder / "polybench.py").write_text(BASE)
    (folder / "polybench_classes.py").write_text(CLASSES)
    (folder / "medley" / "prefix_sum" / "prefix_sum.py").write_text(KERNEL)
    figures, docs = tmp_path / "figures.json", tmp_path / "conformance.md"
    words = ["--suite", str(tmp_path), "--seconds", "1", "--json", str(figures), "--docs", str(docs)]
    assert polybench.main(words) == 0
    rows: dict[str, Any] = {one["name"]: one for one in json.loads(figures.read_text())}
    assert [*rows] == ["prefix_sum, lists", "prefix_sum, NumPy"]
    assert rows["prefix_sum, lists"]["loops"] > 0
    assert all(one["differs"] == "" and one["settled"] > 0 for one in rows.values())
    assert "2 programs, 2 right" in capsys.readouterr().out and "PolyBench" in docs.read_text()
