"""Hot lines: the time of compiled code counts once, and each line that Python ran has its reason."""

from types import SimpleNamespace
from typing import Any

import pytest

from dcarray.core import counters
from dcarray.inspect import hot_lines


def site(line: int, last: int, runs: int = 0) -> Any:
    source = SimpleNamespace(file="/x.py", line=line, last=last)
    return SimpleNamespace(source=source, runs=runs, compiled=2.0, seconds=1.0, refused="", enabled=True)


def test_hot_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    sites, lines = [site(1, 9, 5), site(11, 12), site(14, 19)], dict.fromkeys((1, 4, 11, 15, 20), 3.0)
    sampler = SimpleNamespace(sites=lambda: sites, lines={("/x.py", line): s for line, s in lines.items()})
    monkeypatch.setattr(hot_lines, "SAMPLER", sampler)
    monkeypatch.setattr(counters, "_calls", {})
    counters.note("its reason", kind="loop", where=("/x.py", 14))
    assert {(one.line, one.how[:6], one.seconds, one.why) for one in hot_lines.hot_lines()} == {
        (1, "compil", 2.0, ""),
        (1, "Python", 1.0, "before its compiled code was ready, or in calling it"),
        (4, "Python", 3.0, "before its compiled code was ready"),
        (11, "Python", 3.0, "its compiled code was not ready in time"),
        (15, "Python", 3.0, "its reason"),
        (20, "Python", 3.0, hot_lines.NOTHING),
    }
