"""Pytest as one of several ranks: ``mpiexec -n 3 python -m on_ranks 0/1 tests/dcarray/test_reductions.py``.

All ranks run the same tests, so that arrays in blocks are computed together.  Rank 0 reports; failures of the
others are told beside it, in one piece each.  A test that does not fail on all ranks alike ends the run: what
they do afterwards could not be compared.  Examples of hypothesis follow from the tests, alike on all ranks.

The first argument is a share: ``2/5`` is every fifth test, from the third on.  Tests are left out that have a
marker ``one_process``, whose argument says why they make no sense on ranks.
"""

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from dcarray import comm
from dcarray.comm.transport.agreement import broadcast_object, check_equal

EXAMPLES = 10  # of each property: the same properties are tried for longer in one process


class Together:
    """Keeps the ranks together.

    Parameters
    ----------
    ranks : Communicator
        All of them.
    first, step : int
        Which tests to run of those that there are.
    """

    def __init__(self, ranks: Any, first: int, step: int) -> None:
        self._ranks = ranks
        self._first, self._step = first, step
        self._failed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if not item.get_closest_marker("one_process")]
        chosen = chosen[self._first :: self._step]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen
        for item in chosen:
            _try_fewer(getattr(item, "obj", None))
        check_equal(self._ranks, [item.nodeid for item in items], "the tests to run")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(f"{report.nodeid} ({report.when})\n{report.longreprtext}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        found = yield
        failed = np.zeros(self._ranks.size, np.int64)
        failed[self._ranks.rank] = bool(self._failed)
        together = True
        try:
            self._ranks.allreduce(failed.copy(), failed, "max")
        except comm.CommError as error:  # another rank is still busy with this test, or with another one
            together = False
            failed[:] = 1
            self._failed.append(f"{item.nodeid}: {error}")
        if failed.any() and not (failed.all() and together):
            item.session.shouldfail = f"failed on ranks {np.flatnonzero(failed).tolist()}"
        self._told()
        return found

    def _told(self) -> None:
        """Tell what has failed on this rank, if rank 0 does not."""
        if self._failed and self._ranks.rank:
            text = "\n".join([f"==== rank {self._ranks.rank}", *self._failed, ""])
            sys.__stderr__.write(text)  # type: ignore[union-attr]
        self._failed.clear()

    @pytest.fixture
    def tmp_path(self) -> Iterator[Path]:
        """One folder for all ranks, as files that they write together need it."""
        path = Path(broadcast_object(self._ranks, tempfile.mkdtemp() if not self._ranks.rank else None, 0))
        yield path
        self._ranks.barrier()
        if not self._ranks.rank:
            shutil.rmtree(path, ignore_errors=True)


def _try_fewer(test: Any) -> None:
    """Let a property that says itself how many examples it wants have no more than `EXAMPLES`."""
    wanted = getattr(test, "_hypothesis_internal_use_settings", None)
    if wanted is not None and wanted.max_examples > EXAMPLES:
        test._hypothesis_internal_use_settings = hypothesis.settings(wanted, max_examples=EXAMPLES)


def main(arguments: list[str]) -> int:
    """Run pytest on this rank; the exit status is not 0 where a test has failed."""
    ranks = comm.world()
    hypothesis.settings.register_profile(
        "ranks", max_examples=EXAMPLES, derandomize=True, database=None, deadline=None
    )
    hypothesis.settings.load_profile("ranks")
    if ranks.rank:
        sys.stdout = io.StringIO()
    share, *arguments = arguments
    first, step = map(int, share.split("/"))
    return int(pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[Together(ranks, first, step)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
