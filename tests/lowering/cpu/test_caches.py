"""When bands pay follows from the caches that the system tells of."""

import pytest

from dcarray.lowering.cpu import caches


@pytest.mark.parametrize(("near", "last", "threads", "beyond", "room"), [
    (1 << 20, 32 << 20, 2, 32 << 20, 2 << 20),
    (2 << 20, 480 << 20, 2, 2 << 20, 2 << 20),  # the last one is too far away to count
    (2 << 20, 480 << 20, 0, 2 << 20, 2 << 20),
])  # fmt: skip
def test_limits(
    near: int, last: int, threads: int, beyond: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "sizes", lambda: (32 << 10, near, last))
    found = caches.limits(threads)
    assert (found.last, found.near) == (beyond, room)
    assert found.far == 7 * last // 8 // max(1, threads)
    assert (found.first, found.threads) == (16 << 10, max(1, threads))


def test_sizes() -> None:
    first, near, last = caches.sizes()
    assert 1 << 12 <= first <= near <= last and near >= 1 << 14
