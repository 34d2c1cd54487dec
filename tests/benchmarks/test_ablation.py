"""The gain of a pass in one program."""

import pytest

from benchmarks import ablation


def test_a_pass_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    ablation.main(["--only=mvt", "--passes=locals,loop_products", "--rounds=1"])
    *_, first, last = capsys.readouterr().out.splitlines()
    assert first == "locals: changes no program"
    assert last.startswith("loop_products: mvt as loops ") and "nan" not in last
