"""The programs of `conformance.fuzz` on several ranks: ``mpiexec -n 3 python -m rank_fuzz 0 100``.

Every array lies in blocks.  A program that differs on some rank is printed by that one, and its exit status
says so.
"""

import sys

from conformance.programs import Program, difference
from conformance.writer import program
from dcarray.comm import world

# One thread of a rank works on arrays in blocks; and what shares memory is known where memory is whole.
_ALONE = ("in_thread", "shares_memory")


def fits(made: Program) -> bool:
    """May ranks run this program together?"""
    lines = (*made.body, *(line for lines in made.rounds for line in lines))
    return not any(word in line for line in lines for word in _ALONE)


def main(first: int, count: int) -> int:
    """Run the programs of these numbers; gives how many differ on this rank."""
    wrong = ran = 0
    for seed in range(first, first + count):
        made = program(seed)
        if not fits(made):
            continue
        ran += 1
        told = difference(made, distribute_above=0, jit="off")
        if told is not None:
            wrong += 1
            sys.stderr.write(f"rank {world().rank}: # number {seed}: {told}\n{made.text()}\n")
    print(f"rank {world().rank}: {ran} programs, {wrong} differ\n", end="", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
