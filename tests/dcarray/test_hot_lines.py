"""Hot lines: the time of compiled code counts once, and each line that Python ran has its reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dcarray.core import counters
from dcarray.inspect import hot_lines


def site(line: int, last: int, runs: int = 0, compiled: float = 0.0, seconds: float = 1.0) -> Any:
    source = SimpleNamespace(file="/x.py", line=line, last=last)
    return SimpleNamespace(
        source=source, runs=runs, compiled=compiled, seconds=seconds, refused="", enabled=True
    )


def test_hot_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = [site(1, 9, runs=5, compiled=2.0), site(11, 12), site(14, 19), site(15, 19)]
    lines = {("/x.py", line): 3.0 for line in (1, 4, 11, 15, 20)}
    sampler = SimpleNamespace(sites=lambda: sites, lines=lines)
    monkeypatch.setattr(hot_lines, "SAMPLER", sampler)
    monkeypatch.setattr(counters, "_calls", {})
    counters.note("its reason", kind="loop", where=("/x.py", 14))
    found = {(one.line, one.how): (one.seconds, one.why) for one in hot_lines.hot_lines()}
    python = "Python and NumPy"
    assert found == {
        (1, "compiled, 5 runs"): (2.0, ""),
        (1, python): (1.0, "before its compiled code was ready, or in calling it"),
        (4, python): (3.0, "before its compiled code was ready"),
        (11, python): (3.0, "its compiled code was not ready in time"),
        (15, python): (3.0, "its reason"),
        (20, python): (3.0, hot_lines.NOTHING),
    }
    assert sampler.lines[("/x.py", 1)] == 3.0  # which goes on to be counted
