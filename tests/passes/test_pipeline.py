"""The pipeline: to a fixpoint, extensible, and it names the pass that breaks a region."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcarray.ir.nodes import Compute, Region
from dcarray.ir.passes import Log, Pass, pipeline
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError

TEXT = """region() {
  in x: f64[8];  out y: f64[8];  temp t: f64[8]
  t[i] = negative(x[i]) for i<8
  y[i] = sqrt(t[i]) for i<8
}
"""


def test_same_object_when_there_is_nothing_to_do() -> None:
    region = parse("region() { in x: f64[8]; out y: f64[8]; y[i] = sqrt(x[i]) for i<8 }")
    assert pipeline.run(region, debug=True) is region
    done = pipeline.run(parse(TEXT), debug=True)
    assert pipeline.run(done) is done


def test_a_pass_of_somebody_else() -> None:
    def twist(region: Region, log: Log) -> Region:
        if any(array.name == "z" for array in region.arrays):
            return region
        log.done("rename", "y is called z")
        text = dump(region).replace("y", "z")
        return parse(text)

    log = Log()
    passes = (*pipeline.PASSES, Pass("rename", twist))
    after = pipeline.run(parse(TEXT), log, debug=True, passes=passes)
    assert [stmt.target.array for stmt in after.body if isinstance(stmt, Compute)] == ["z"]
    assert "rename: done: y is called z" in str(log)


def test_a_pass_that_breaks_the_region_is_named() -> None:
    def spoil(region: Region, log: Log) -> Region:
        return replace(region, arrays=region.arrays[1:])

    with pytest.raises(VerifyError) as caught:
        pipeline.run(parse(TEXT), debug=True, passes=(Pass("spoil", spoil),))
    assert "spoil" in "".join(caught.value.__notes__)


def test_reasons_are_those_of_the_last_round() -> None:
    log = Log()
    pipeline.run(parse(TEXT), log)
    assert [note.kind for note in log.notes] == ["done"]
    assert log.notes[0].pass_name == "fuse"


def test_places_are_carried_along() -> None:
    region = parse(TEXT)
    body = tuple(replace(stmt, loc=k) for k, stmt in enumerate(region.body))
    after = pipeline.run(replace(region, body=body))
    assert [stmt.loc for stmt in after.body] == [1]
