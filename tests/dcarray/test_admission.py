"""When compiled code is asked for, and when it is kept."""

from __future__ import annotations

from dcarray.tiering import admission
from dcarray.tiering.admission import Measured, Traffic


def measured(*seconds: float) -> Measured:
    made = Measured()
    for one in seconds:
        made.python(one)
    return made


def test_the_least_time_in_python_counts() -> None:
    assert measured(3.0, 1.0, 2.0).seconds == 1.0 and measured(3.0, 1.0).runs == 2
    assert not Measured().may_pay() and not Measured().is_known()


def test_when_the_time_in_python_is_known() -> None:
    assert measured(admission._LONG).is_known() and not measured(admission._LONG / 2).is_known()
    assert measured(1e-5, 1e-5).is_known()


def test_short_statements_cannot_pay() -> None:
    short, long = admission._LEAST / 2, admission._LEAST * 2
    assert measured(long).may_pay() and not measured(short).may_pay()
    assert not measured(*[short] * 7).cannot_pay() and measured(*[short] * 8).cannot_pay()
    assert not measured(*[long] * 8).cannot_pay()


def test_compiled_code_that_is_not_faster_is_found_in_a_few_runs() -> None:
    slow, fast, lucky = measured(1.0, 1.0), measured(1.0, 1.0), measured(1.0, 1.0)
    for k in range(admission._TRIALS):
        last = k == admission._TRIALS - 1
        assert slow.compiled(1.0) is last
        assert not fast.compiled(0.5)
        assert not lucky.compiled(0.5 if k == 1 else 2.0)  # the least counts here, too
    assert not slow.compiled(9.0)  # it has been judged


def test_compiled_code_is_not_judged_before_python_is_known() -> None:
    once = measured(1e-5)
    assert not any([once.compiled(1.0) for _ in range(20)])


def test_the_first_kind_of_values_may_get_a_plan_at_once_others_when_they_come_again() -> None:
    traffic, entries = Traffic(), dict[str, int]()
    assert traffic.admits("a", entries)
    entries["a"] = 1
    assert not traffic.admits("b", entries) and traffic.admits("b", entries)
    assert traffic.admits("c", entries, eagerly=True)


def test_many_kinds_of_values() -> None:
    traffic, entries = Traffic(), {str(k): k for k in range(admission._MAX_KEYS)}
    runs = 0
    while runs < admission._UNUSED * len(entries):
        runs += 1
        before = len(entries)
        if traffic.admits("new", entries):
            break
        assert len(entries) == before
    assert len(entries) == before - 1 and "0" not in entries and runs > admission._UNUSED


def test_values_that_never_come_again_are_a_loss() -> None:
    changing, mixed = Traffic(), Traffic()
    for k in range(2 * admission._LOSS):
        assert not changing.admits(k, {"a": 1})
        assert not mixed.admits(k, {"a": 1})
        mixed.hit()
    assert changing.is_a_loss() and not mixed.is_a_loss()
    assert not Traffic().is_a_loss()
