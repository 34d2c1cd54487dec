"""A device of host memory that counts transfers, may run out of memory, and may be lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from dcarray.lowering.gpu import device as table


class MadeUpDevice:
    """A device whose buffers are arrays of bytes.  Without a target (``""``) recordings run on the host."""

    def __init__(self, name: str = "made-up:0", target: str = "") -> None:
        self.name, self.target = name, target
        self.description = "host memory"
        self.memory = 1 << 40
        self.fp64 = True
        self.uploads = self.downloads = 0
        self.error: Exception | None = None  # that every use raises from now on
        self.left: int | None = None  # bytes that can still be allocated

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def allocate(self, nbytes: int) -> Any:
        self._check()
        if self.left is not None:
            if nbytes > self.left:
                raise MemoryError(f"{self.name}: {nbytes} bytes")
            self.left -= nbytes
        return np.full(nbytes, 0xAB, np.uint8)

    def upload(self, source: Any, buffer: Any) -> None:
        self._check()
        assert source.flags.c_contiguous
        self.uploads += 1
        buffer[: source.nbytes] = source.reshape(-1).view(np.uint8)

    def download(self, buffer: Any, target: Any) -> None:
        self._check()
        assert target.flags.c_contiguous
        self.downloads += 1
        target.reshape(-1).view(np.uint8)[...] = buffer[: target.nbytes]

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        self._check()
        target[:nbytes] = source[:nbytes]

    def synchronise(self) -> None:
        self._check()


@contextmanager
def made_up(monkeypatch: pytest.MonkeyPatch, *devices: MadeUpDevice) -> Iterator[MadeUpDevice]:
    """Put devices into the table as those of a kind of their own."""
    monkeypatch.setattr(table, "KINDS", (*table.KINDS, "made-up"))
    monkeypatch.setitem(table._found, "made-up", list(devices))
    yield devices[0]
