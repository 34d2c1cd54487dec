"""What the tests of passes share: run a pass on text, and check that it keeps the meaning.

A file in ``golden`` has cases: a title; comments after ``#``; a region, whose lines are marked with ``-``
where a pass removes them and with ``+`` where it adds them; what its log says after ``?``, and what it does
not say after ``!``.  ``pytest --rewrite`` writes down what passes do now.
"""

import difflib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.dims import evaluate
from dcarray.ir.nodes import Region
from dcarray.ir.passes import Log, Pass
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

SYMBOLS = {"N": 9, "M": 7, "K": 6}


def memory(region: Region, seed: int = 0) -> dict[str, np.ndarray]:
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    made = {}
    for array in region.arrays:
        if array.role in ("in", "inout") and array.base is None:
            shape = tuple(evaluate(n, SYMBOLS) for n in array.shape)
            made[array.name] = rng.integers(1 if array.dtype.kind == "u" else -3, 4, shape).astype(
                array.dtype
            )
    return made


def meaning(region: Region, seed: int = 0) -> dict[str, tuple[str, bytes]]:
    """The bits of every result."""
    with np.errstate(all="ignore"):
        results = interp.run(region, memory(region, seed), SYMBOLS)
    return {
        name: (str(value.dtype), np.ascontiguousarray(value).tobytes()) for name, value in results.items()
    }


def apply(one: Pass | Callable[[Region, Log], Region], text: str, log: Log) -> str:
    """The text after a pass, which is checked to be valid, to mean the same, and to be final."""
    before = parse(text)
    verify(before)
    fn = one.fn if isinstance(one, Pass) else one
    after = fn(before, log)
    verify(after)
    assert parse(dump(after)) == after
    assert meaning(after) == meaning(before)
    if after is not before:
        assert after != before, "a pass that changes nothing returns the same object"
    again = fn(after, Log())
    assert again is after, f"not final:\n{dump(again)}"
    return dump(after)


@pytest.fixture(scope="session")
def check() -> Callable[..., Log]:
    """``check(pass, before, after)``: the golden texts; indentation does not count."""

    def run(one: Pass | Callable[[Region, Log], Region], before: str, after: str | None) -> Log:
        log = Log()
        found = apply(one, before, log)
        wanted = dump(parse(before if after is None else after))
        assert found == wanted, f"found:\n{found}\nlog:\n{log}"
        if after is None:
            fn = one.fn if isinstance(one, Pass) else one
            region = parse(before)
            assert fn(region, Log()) is region
        return log

    return run


def region_text(lines: list[str]) -> str:
    """The text of a region without its braces; what comes before the declarations may be missing."""
    head = lines.pop(0) if lines and lines[0].startswith("region(") else "region()"
    return "\n".join([head + " {", *lines, "}"])


def marked(before: str, after: str) -> list[str]:
    """The lines of a golden case."""
    texts = []
    for text in (before, after):
        head, *lines, _ = text.strip().splitlines()
        head = head.removesuffix(" {")
        texts.append([head, *lines] if head != "region()" else lines)
    old, new = ([line.removeprefix("  ") for line in lines] for lines in texts)
    stripped = ([line.strip() for line in lines] for lines in (old, new))
    made = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, *stripped, autojunk=False).get_opcodes():
        if kind == "equal":
            made += [f"  {line}" for line in new[k:m]]
        else:
            made += [f"- {line}" for line in old[i:j]] + [f"+ {line}" for line in new[k:m]]
    return made


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """``golden(pass)``: all cases of the file in ``golden`` that is called like the test, or like `name`."""

    def run(one: Pass, name: str = request.path.stem.removeprefix("test_")) -> None:
        file = Path(__file__).parent / "golden" / f"{name}.txt"
        blocks, wrong = file.read_text().strip().split("\n\n"), []
        for k, block in enumerate(blocks):
            lines = {mark: [line[2:] for line in block.splitlines() if line[0] in mark]
                     for mark in (" -", " +", "?", "!")}  # fmt: skip
            log = Log()
            before, after = (region_text(lines[mark]) for mark in (" -", " +"))
            found = apply(one, before, log)
            if [line.strip() for line in found.splitlines()] != [line.strip() for line in after.splitlines()]:
                title = [line for line in block.splitlines() if line[0] not in " -+?!"]
                ends = [line for line in block.splitlines() if line[0] in "?!"]
                blocks[k] = "\n".join([*title, *marked(dump(parse(before)), found), *ends])
                wrong.append(f"{blocks[k]}\nlog:\n{log}")
            said = [text for text in lines["?"] if text not in str(log)]
            assert not said, f"{block}\nthe log does not say {said}:\n{log}"
            assert not any(text in str(log) for text in lines["!"]), f"{block}\nlog:\n{log}"
        if wrong and request.config.getoption("--rewrite"):
            file.write_text("\n\n".join(blocks) + "\n")
        elif wrong:
            command = f"python -m pytest {request.path.relative_to(Path.cwd())} --rewrite"
            pytest.fail("\n\n".join(["found:", *wrong, f"to write this down: {command}"]), pytrace=False)

    return run


@pytest.fixture(scope="session")
def same_meaning() -> Callable[[Region, Region], None]:
    """``same_meaning(before, after)``: bit for bit, on some inputs."""

    def run(before: Region, after: Region) -> None:
        for seed in range(2):
            assert meaning(after, seed) == meaning(before, seed), f"{dump(before)}\n->\n{dump(after)}"

    return run
