"""When compiled code is asked for, and when it is kept."""

import pytest

from dcarray.tiering import admission
from dcarray.tiering.admission import InARow, KindCounts, Measured, Pace, due_after


def measured(*seconds: float) -> Measured:
    made = Measured()
    for one in seconds:
        made.python(one)
    return made


def test_the_least_time_in_python_counts_once_it_is_known() -> None:
    short, long = admission._LEAST_PYTHON / 2, admission._LEAST_PYTHON * 2
    assert measured(3.0, 1.0, 2.0).seconds == 1.0 and measured(3.0, 1.0).runs == 2
    assert not Measured().may_pay() and not Measured().is_known()
    assert measured(admission._LONG_RUN).is_known() and not measured(admission._LONG_RUN / 2).is_known()
    often = measured(*[long] * admission._SURE)
    assert often.is_known() and often.may_pay() and not measured(long).may_pay()
    assert measured(admission._LONG_RUN).may_pay() and not measured(*[short] * admission._SURE).may_pay()
    found = [measured(*[one] * count).cannot_pay() for one, count in ((short, 7), (short, 8), (long, 8))]
    assert found == [False, True, False]


def judged(python: float, *compiled: float) -> bool | None:
    """Whether compiled code is given up after such times, in turn with Python; None: it is not judged yet."""
    made = measured(*[python] * admission._SURE)
    found = False
    for seconds in compiled:
        assert not made.is_pythons_turn()
        found = made.compiled(seconds)
        if made.judged:
            assert not made.is_pythons_turn() and not made.compiled(9.0)
            return found
        assert made.is_pythons_turn()
        made.python(python)
    return None


def test_compiled_code_that_is_not_faster_is_found_in_a_few_runs() -> None:
    trials = admission._TRIALS
    short = admission._LEAST_PYTHON * 2
    assert judged(short, *[short] * (trials - 1)) is None and judged(short, *[short] * trials) is True
    most = trials // 2 + 1
    assert judged(short, *[0.6 * short] * most, *[9.0] * (trials - most)) is False  # the median counts
    assert judged(short, *[9.0] * (trials - 1), 0.6 * short) is True
    assert judged(1.0, *[1.0] * admission._TRIALS_OF_LONG) is True  # what takes long has few trials
    assert judged(1.0, 0.9 * admission._CLEAR) is False  # or none, if it is clearly faster
    assert judged(1.0, 1.1 * admission._CLEAR) is None


def test_code_that_an_earlier_run_kept_is_tried_again_with_few_runs_in_python() -> None:
    for python, refused in ((1e-4, True), (3e-4, False)):
        made = Measured()
        made.kept = True
        turns, found = 0, False
        while not made.judged:
            if made.is_pythons_turn():
                made.python(python)
                turns += 1
            else:
                found = made.compiled(1.6e-4)
        assert turns == admission._TRIALS and found is refused
    long = Measured()
    long.kept = True
    for _ in range(99):
        assert not long.is_pythons_turn() and not long.compiled(admission.LONGER)


def test_a_time_of_python_beside_other_work_is_found_out() -> None:
    made = measured()
    made.python(12e-3, True)  # another program had the processor
    assert not made.compiled(200e-6) and not made.compiled(200e-6)
    assert not made.compiled(200e-6) and made.judged
    turns = [made.is_pythons_turn() for _ in range(admission._CHECKED)]
    assert not any(turns[:-1]) and turns[-1] and made.is_pythons_turn()  # until it is measured
    made.python(7e-6)
    assert not made.judged and not made.is_pythons_turn()
    found = False
    for _ in range(admission._TRIALS):
        found = made.compiled(200e-6)
        made.python(7e-6)
    assert found or made.compiled(200e-6)


def test_compiled_code_that_stays_faster_is_checked_seldom() -> None:
    made = measured()
    made.python(12e-3, True)
    for _ in range(admission._SURE):
        made.compiled(200e-6)
    checks = 0
    for _ in range(admission._CHECKED**2):
        if made.is_pythons_turn():
            checks += 1
            made.python(11e-3)
    assert made.judged and checks == 3  # after 32, 128 and 512 runs


def test_short_runs_are_measured_in_rows_and_one_long_run_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(admission, "perf_counter", lambda: now[0])

    def ends(row: InARow, *seconds: float) -> list[float]:
        found = []
        for one in seconds:
            row.begin()
            now[0] += one
            found.append(row.end(now[0]))
        return found

    assert ends(InARow(), *[1e-5] * 11) == [0.0] * 11
    assert ends(InARow(), 0.08) == [pytest.approx(0.08)]


def test_questions_in_vain_take_a_small_part_of_the_time_of_statements() -> None:
    assert not due_after(0.0039, 0.0, False) and not due_after(0.0139, 0.5, False)
    assert due_after(0.005, 0.0, False) == pytest.approx(0.25) and not due_after(0.09, 0.0, True)


def test_the_pace_of_a_loop() -> None:
    pace, items = Pace(), range(10, 110, 2)
    pace.look(5.0, 10, items)
    assert not pace.seconds and not pace.is_slow() and pace.is_faster(100.0, 10, items)
    pace.look(6.0, 20, items)
    assert pace.seconds == 1 / 5 and pace.is_slow()
    assert pace.is_faster(8.0, 10, items) and not pace.is_faster(9.5, 10, items)
    pace.look(7.0, 10, items)  # another loop begins
    assert pace.seconds == 1 / 5


def test_the_first_kind_of_values_may_get_a_plan_at_once_others_when_they_come_again() -> None:
    traffic, entries = KindCounts(), dict[str, int]()
    assert traffic.admits("a", entries)
    entries["a"] = 1
    assert not traffic.admits("b", entries) and traffic.admits("b", entries)
    assert traffic.admits("c", entries, eagerly=True)


def test_many_kinds_of_values() -> None:
    traffic, entries = KindCounts(), {str(k): k for k in range(admission._MAX_KEYS)}
    runs = 0
    while runs < admission._UNUSED * len(entries):
        runs += 1
        before = len(entries)
        if traffic.admits("new", entries):
            break
        assert len(entries) == before
    assert len(entries) == before - 1 and "0" not in entries and runs > admission._UNUSED


def test_values_that_never_come_again_are_a_loss() -> None:
    changing, mixed = KindCounts(), KindCounts()
    for k in range(2 * admission._LOSS):
        assert not changing.admits(k, {"a": 1})
        assert not mixed.admits(k, {"a": 1})
        mixed.hit()
    assert changing.is_a_loss() and not mixed.is_a_loss()
    assert not KindCounts().is_a_loss()
