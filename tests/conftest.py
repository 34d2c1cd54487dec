"""Fixtures of all tests."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cuda_compiled
import pytest

from dcarray.core import faults
from dcarray.core.counters import note

MANY = 2
"""Cases of a test from which on a run of all tests may have a part of them."""
LONG = Path(__file__).with_name("long.txt").read_text().split()
"""Tests that take 8 seconds and more, by `pytest --durations`: such a run has half of them."""

_FAULTS: list[str] = []  # errors of the package's own that were passed over
_LIMITS = "MemoryError", "RecursionError"  # which are the machine's, and the program's


def _noted(reason: str, kind: str, where: tuple[str, int]) -> None:
    _FAULTS.append(f"{where[0]}:{where[1]}: {reason}")
    note(reason, kind=kind, where=where)


faults.note = _noted


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of programs that run as they are written."""
    from dcarray.jit.program.decorator import Program

    found: list[str] = []
    before = Program._as_written

    def noted(self: Any, *args: Any) -> Any:
        found.append(self._name)
        return before(self, *args)

    monkeypatch.setattr(Program, "_as_written", noted)
    return found


@pytest.fixture(autouse=True)
def nothing_passed_over(request: pytest.FixtureRequest) -> Iterator[None]:
    """An error of the package's own leaves statements to Python, whose results are right: only this shows it
    (but where a test with the mark ``faults`` makes it)."""
    before = len(_FAULTS)
    yield
    found = [text for text in _FAULTS[before:] if not any(name in text for name in _LIMITS)]
    if found and request.node.get_closest_marker("faults") is None:
        pytest.fail("errors of the package's own:\n" + "\n".join(found), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options to run a share of the tests, or of the cases of tests that have many, and to write
    golden files anew."""
    parser.addoption("--share", metavar="K/N", help="only every N-th test, from the K-th on")
    parser.addoption(
        "--cases",
        metavar="K/N",
        help=f"of tests with more than {MANY} cases every N-th, and at least one; of long tests every second",
    )
    parser.addoption("--rewrite", action="store_true", help="write down in golden files what passes do now")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not of the share."""
    if share := config.getoption("--share"):
        first, step = map(int, share.split("/"))
        _keep(config, items, [k % step == first for k in range(len(items))])
    if share := config.getoption("--cases"):
        first, step = map(int, share.split("/"))
        names = [item.nodeid.partition("[")[0] for item in items]
        cases = Counter(names)
        seen: Counter[str] = Counter()
        long_ones = {name: k for k, name in enumerate(LONG)}
        kept = []
        for name in names:
            kept.append(cases[name] <= MANY or seen[name] % step == first % min(step, cases[name]))
            if step > 1 and name in long_ones:
                kept[-1] &= long_ones[name] % 2 == first % 2
            seen[name] += 1
        _keep(config, items, kept)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[bool]) -> None:
    config.hook.pytest_deselected(items=[item for item, keeps in zip(items, kept, strict=True) if not keeps])
    items[:] = [item for item, keeps in zip(items, kept, strict=True) if keeps]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """``golden(file, text)``: a text is what a file has, or, with ``prefix``, its lines that begin so.  With
    ``--rewrite`` it is written there instead."""

    def check(file: Path, text: str, prefix: str = "") -> None:
        wanted = text.splitlines()
        lines = file.read_text().splitlines() if file.exists() else []
        known = [line for line in lines if line.startswith(prefix)]
        if wanted == known:
            return
        if not request.config.getoption("--rewrite"):
            shown = "\n".join(difflib.unified_diff(known, wanted, file.name, "now", lineterm=""))
            command = f'python -m pytest "{request.node.nodeid}" --rewrite'
            pytest.fail(f"{shown}\nIf this is as it should be:\n    {command}", pytrace=False)
        place = lines.index(known[0]) if known else len(lines)
        others = [line for line in lines if not line.startswith(prefix)]
        file.write_text("".join(f"{line}\n" for line in (*others[:place], *wanted, *others[place:])))

    return check


@pytest.fixture(autouse=True)
def compiled_for_a_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile the kernels of blocks that a test makes as CUDA C++, too, unless it does so itself or makes
    mistakes on purpose; note registers and spills."""
    with cuda_compiled.noted() as kernels:
        yield
    name = request.module.__name__
    if kernels and "malformed" not in name and "cuda_kernels" not in name:
        found = cuda_compiled.compiled(kernels)
        request.node.user_properties += [(cuda_compiled.PROPERTY, one) for one in found]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the kernels that were compiled for a GPU take."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [one for report in reports for one in getattr(report, "user_properties", ())]
    functions = [tuple(value) for name, value in properties if name == cuda_compiled.PROPERTY]
    if functions:
        terminalreporter.write_line(cuda_compiled.summary(functions))
