"""The pipeline: to a fixpoint, extensible, and it names the pass that breaks a region."""

from dataclasses import replace

import pytest

from dcarray.ir.nodes import Compute, Region
from dcarray.ir.passes import Log, Pass
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.nested import NESTED
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.passes.portable.pipeline import PORTABLE
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
    assert CPU.run(region, debug=True) is region
    done = CPU.run(parse(TEXT), debug=True)
    assert CPU.run(done) is done


def test_a_pass_of_somebody_else() -> None:
    def twist(region: Region, log: Log) -> Region:
        if any(array.name == "z" for array in region.arrays):
            return region
        log.done("rename", "y is called z")
        text = dump(region).replace("y", "z")
        return parse(text)

    log = Log()
    after = CPU.with_pass(Pass("rename", twist)).run(parse(TEXT), log, debug=True)
    assert [stmt.target.array for stmt in after.body if isinstance(stmt, Compute)] == ["z"]
    assert "rename: done: y is called z" in str(log)


def test_a_pass_that_breaks_the_region_is_named() -> None:
    def spoil(region: Region, log: Log) -> Region:
        return replace(region, arrays=region.arrays[1:])

    with pytest.raises(VerifyError) as caught:
        Pipeline(passes=(Pass("spoil", spoil),)).run(parse(TEXT), debug=True)
    assert "spoil" in "".join(caught.value.__notes__)


def test_reasons_are_those_of_the_last_round() -> None:
    log = Log()
    CPU.run(parse(TEXT), log)
    assert [note.kind for note in log.notes] == ["done"]
    assert log.notes[0].pass_name == "fuse"


def test_places_are_carried_along() -> None:
    region = parse(TEXT)
    body = tuple(replace(stmt, loc=k) for k, stmt in enumerate(region.body))
    after = CPU.run(replace(region, body=body))
    assert [stmt.loc for stmt in after.body] == [1]


LOOPS = """region() {
  in x: f64[8];  inout y: f64[8];  inout z: f64[8]
  for k in range(0, 3, 1) {
    if less(y[k], 1.0) { z[k] = add(z[k], negative(x[k])) } else { z[k] = sqrt(z[k]) }
    y[i] = sqrt(y[i]) for i<8
  }
}
"""


def test_a_pipeline_runs_in_all_loops_and_branches() -> None:
    seen: list[str] = []

    def look(region: Region, log: Log) -> Region:
        seen.append(" ".join(type(stmt).__name__ for stmt in region.body))
        return region

    look_at = Pass("look", look)
    assert Pipeline((look_at, NESTED), (), ()).run(parse(LOOPS)) is not None
    assert sorted(set(seen)) == ["Branch Compute", "Compute", "Loop"]
    seen.clear()
    CPU.with_pass(look_at, after="fuse").run(parse(LOOPS))
    assert {"Branch Compute", "Compute", "Loop"} <= set(seen)
    log = Log()
    without = CPU.without("simplify").without("fuse")
    without.run(parse("""region() {
      in x: f64[8];  inout y: f64[8];  temp t: f64[8]
      for k in range(0, 3, 1) {
        t[i] = negative(x[i]) for i<8
        y[i] = add(y[i], multiply(sqrt(t[i]), 1.0)) for i<8
      }
    }"""), log, debug=True)  # fmt: skip
    assert not {"simplify", "fuse"} & {note.pass_name for note in log.notes}


def test_passes_have_their_place() -> None:
    mine = Pass("mine", lambda region, log: region)
    names = [one.name for one in CPU.with_pass(mine, before="fuse").passes]
    assert names.index("mine") == names.index("fuse") - 1
    names = [one.name for one in CPU.with_pass(mine, after="row_fusion").final]
    assert names.index("mine") == names.index("row_fusion") + 1
    assert CPU.with_pass(mine).passes == (*CPU.passes, mine)
    assert CPU.with_pass(mine, after="fuse").without("mine") == CPU
    with pytest.raises(
        ValueError, match=r"no pass is called 'fusion'; the passes are simplify, .* row_fusion"
    ):
        CPU.with_pass(mine, after="fusion")
    with pytest.raises(ValueError, match="no pass is called 'fusion'; the passes are loop_products"):
        CPU.without("fusion")
    with pytest.raises(ValueError, match="not both"):
        CPU.with_pass(mine, after="fuse", before="dead")


def test_every_pass_for_all_targets_runs_on_a_cpu_in_the_same_order() -> None:
    assert CPU.early == PORTABLE.early
    assert tuple(one for one in CPU.passes if one in PORTABLE.passes) == PORTABLE.passes
    assert tuple(one for one in CPU.final if one in PORTABLE.final) == PORTABLE.final
