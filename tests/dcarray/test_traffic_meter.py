"""The byte counter of the demo."""

import numpy as np

from dcarray.demo.traffic_meter import Metered


def _moved(work: object, *args: object) -> int:
    Metered.moved = 0
    work(*args)  # type: ignore[operator]
    return Metered.moved


def test_operations_count_operands_and_results() -> None:
    a = np.ones((10, 10)).view(Metered)
    assert _moved(lambda: a + a) == 2400
    assert _moved(lambda: a[1:-1] * 2.0) == 2 * 640
    assert _moved(lambda: np.sum(a)) == 800
    assert _moved(lambda: a.copy()) == 1600
    assert _moved(lambda: a[0:5]) == 0
    assert _moved(lambda: np.where(a > 0, a, a)) == (800 + 100) + (100 + 3 * 800)


def test_assignment_and_in_place_count() -> None:
    a = np.ones(10).view(Metered)
    assert _moved(a.__setitem__, slice(0, 5), np.zeros(5)) == 80
    assert _moved(a.__iadd__, 1.0) == 160
    assert type(a.__iadd__(1.0)) is Metered


def test_metered_results_are_numpys() -> None:
    a = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(np.gradient(a.view(Metered), axis=0), np.gradient(a, axis=0))
    assert float(np.std(a.view(Metered))) == float(np.std(a))
