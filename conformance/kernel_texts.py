"""Print the kernels whose text a change alters: ``python -m conformance.kernel_texts [COMMIT] [--only
WORD]``.

The same programs and random regions are planned twice: by the working tree, and by a commit (the last one by
default) in a separate worktree.  A kernel's text and the source that a target emits for it determine its
machine code: if no text differs, nothing is slower.  The exit status is 1 if a text differs, else 0.

Programs are those of ``benchmarks`` (the short benchmark, `benchmarks.programs`, PolyBench, typical plans),
recorded and accelerated, for the processor; random regions are those of the tests, for each target.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REGIONS = 60  # of each kind
THREADS = 2

Texts = dict[str, list[str]]


@contextmanager
def _noted(found: list[str], compiled: bool) -> Iterator[None]:
    """A context that appends the texts of kernels to ``found``; unless ``compiled``, none is compiled."""
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.kernel.text import kernel_text
    from dcarray.lowering.program.code_cache import CodeCache

    name = "loaded" if hasattr(CodeCache, "loaded") else "launch"  # its name in older commits
    plain = getattr(CodeCache, name)

    def launch(self: Any, compiler: Any, kernel: Any) -> Any:
        try:
            emitted = compiler.emit(kernel)
        except Unsupported as refusal:
            emitted = str(refusal)
        # what is no kernel is a routine, of which there is only the emitted text
        digest = sha256(emitted.encode()).hexdigest()[:16]
        found.append(f"{kernel_text(kernel)}\nemitted: {digest}" if kernel.phases else emitted)
        return plain(self, compiler, kernel) if compiled else object()

    setattr(CodeCache, name, launch)
    try:
        yield
    finally:
        setattr(CodeCache, name, plain)


# ---- what is planned ------------------------------------------------------------------------------------
def _programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each of the benchmarks' programs, and a function without arguments that runs it."""
    import numpy as np

    import dcarray as dc
    from benchmarks import plan_programs, polybench_kernels, programs, speed

    def wrapped(function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], object]:
        def run() -> object:
            arrays = [dc.asarray(x.copy()) if isinstance(x, np.ndarray) else x for x in given]
            return dc.evaluate(function(*arrays))

        return run

    def accelerated(function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], object]:
        def run() -> None:
            fast = dc.accelerate(function)
            for _ in range(3):
                fast(*(x.copy() if isinstance(x, np.ndarray) else x for x in given))

        return run

    for one in plan_programs.PROGRAMS:
        yield f"plan of {one.__name__}", one
    for case in (*speed.cases(1.0), *speed.products(1.0)):
        yield case.name, lambda case=case: dc.evaluate(case.work(np, *map(dc.asarray, case.arrays())))  # type: ignore[misc]
    for name, function, given in programs.programs(0.3):
        yield f"{name}, recorded", wrapped(function, given)
        yield f"{name}, accelerated", accelerated(function, given)
    for kernel in polybench_kernels.KERNELS:
        for style, function in (("statements", kernel.statements), ("loops", kernel.loops)):
            yield f"{kernel.name}, {style}", accelerated(function, tuple(kernel.arguments(0.3)))


def _regions() -> Iterator[tuple[str, Any]]:
    """Yield names and random regions (intermediate representation) from the generators of the tests."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import band_regions
    import ir_regions
    import loop_regions
    import row_regions
    import sweep_regions

    for seed in range(REGIONS):
        yield f"region {seed}", ir_regions.make_case(seed, 6).region
        for symbolic in (False, True):
            sizes = " of any size" if symbolic else ""
            yield f"bands {seed}{sizes}", band_regions.Chains(random.Random(seed), symbolic=symbolic).region()
            yield f"rows {seed}{sizes}", row_regions.Maker(random.Random(seed), symbolic).region()
            loops = loop_regions.Loops(random.Random(seed), symbolic=symbolic)
            yield f"loops {seed}{sizes}", loops.region()
        yield f"sweeps {seed}", sweep_regions.sweeps(random.Random(seed))


def collect(only: str) -> Texts:
    """Return the texts of the kernels of all programs and regions whose name holds a word."""
    import numpy as np

    import dcarray as dc
    from dcarray.lowering import targets
    from dcarray.lowering.compilation import compile_region
    from dcarray.lowering.program import code_cache

    texts: Texts = {}
    eager = dc.options(jit="eager", eager_below=0, cache_dir=None, threads=THREADS)
    with warnings.catch_warnings(action="ignore"), eager, np.errstate(all="ignore"):
        for name, run in _programs():
            if only in name:
                with _noted(texts.setdefault(name, []), True):
                    try:
                        run()
                    except Exception as error:
                        texts[name].append(f"{type(error).__name__}: {error}")
    code_cache.forget()
    for name, region in _regions():
        for target in targets.names() if only in name else ():
            found = texts.setdefault(f"{name}, {target}", [])
            with _noted(found, False):
                try:
                    planned = targets.get(target).pipeline(THREADS).run(region)
                    found.append(compile_region(planned, target, threads=THREADS).driver)
                except Exception as error:
                    found.append(f"{type(error).__name__}: {error}")
    return texts


# ---- in two working trees ---------------------------------------------------------------------------------
def _texts_of(tree: Path, only: str, scratch: Path) -> Texts:
    """Return the texts that `collect` returns with the dcarray of a working tree, in a separate process."""
    # programs and random regions are those of this tree, whichever package plans them
    package = scratch / tree.name / "packages"
    package.mkdir(parents=True)
    (package / "dcarray").symlink_to(tree / "dcarray")
    out = scratch / tree.name / "texts.json"
    path = os.pathsep.join([str(package), str(ROOT)])
    command = [sys.executable, "-P", "-m", "conformance.kernel_texts", "--write", str(out), "--only", only]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path}, cwd=scratch)
    texts: Texts = json.loads(out.read_text())
    return texts


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def compared(commit: str, only: str) -> tuple[Texts, Texts]:
    """Return the texts of a commit, and those of the working tree."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        before = scratch / "before"
        _git("worktree", "add", "--quiet", "--detach", "--force", str(before), commit)
        try:
            # the C module is no part of a commit: the same one serves both unless its sources differ
            if not _git("diff", "--name-only", commit, "--", "dcarray/_native"):
                for built in (ROOT / "dcarray" / "_native").glob("*.so"):
                    shutil.copy(built, before / "dcarray" / "_native")
            return _texts_of(before, only, scratch), _texts_of(ROOT, only, scratch)
        finally:
            _git("worktree", "remove", "--force", str(before))


def differences(before: Texts, after: Texts, most: int) -> Iterator[str]:
    """Yield lines that list the programs with different kernels, with the texts of at most ``most``
    kernels."""
    for name in dict.fromkeys((*before, *after)):
        # several threads may compile at a time, in any order
        old, new = (sorted(set(texts.get(name, ()))) for texts in (before, after))
        gone, come = [t for t in old if t not in new], [t for t in new if t not in old]
        if not gone and not come:
            continue
        yield f"{name}: {len(gone)} of {len(old)} kernels are gone, {len(come)} are new"
        pairs = list(zip(gone, come, strict=False))[:most]
        most -= len(pairs)
        for a, b in pairs:
            yield from difflib.unified_diff(
                a.splitlines(), b.splitlines(), "before", "after", n=1, lineterm=""
            )


def main() -> int:
    """Print the differences and the numbers of kernels; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance.kernel_texts", description=__doc__)
    parser.add_argument("commit", nargs="?", default="HEAD", help="what the working tree is compared with")
    parser.add_argument("--only", metavar="WORD", default="", help="only programs whose name holds WORD")
    parser.add_argument("--shown", type=int, default=3, metavar="N", help="kernels whose texts are shown")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        args.write.write_text(json.dumps(collect(args.only)))
        return 0
    before, after = compared(args.commit, args.only)
    lines = list(differences(before, after, args.shown))
    print("\n".join(lines))
    count = sum(len(set(texts)) for texts in after.values())
    changed = sum("kernels are gone" in line for line in lines)
    print(
        f"{count} kernels of {len(after)} programs and regions: those of {changed} differ from {args.commit}"
    )
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
