"""``python -m conformance.fpga --npbench PATH``: checks NPBench as circuits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.fpga import npbench


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all results are right, else 1."""
    parser = argparse.ArgumentParser(prog="python -m conformance.fpga", description=__doc__)
    parser.add_argument(
        "--npbench", type=Path, metavar="PATH", required=True,
        help="export NPBench's kernels, of the checkout at PATH, and simulate them",
    )  # fmt: skip
    parser.add_argument("--only", default="", metavar="WORD", help="benchmarks whose names hold WORD")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="the document whose table is written anew")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="benchmarks at a time (default: 1)")
    parser.add_argument("--step", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.jobs < 1:
        parser.error("--jobs is 1 or more")
    return npbench.main(given.npbench, given.only, given.step, given.docs, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
