"""The programs of `conformance.fuzz` on several ranks: ``mpiexec -n 3 python -m rank_fuzz 0 100``.

Every array lies in blocks, or is laid out in a random way.  A program that differs on some rank is printed by
that one, and its exit status says so.
"""

import random
import sys
from typing import Any

from rank_keys import laid_out

import dcarray as dc
from conformance import programs
from conformance.writer import program
from dcarray.comm import world

# One thread of a rank works on arrays in blocks; and what shares memory is known where memory is whole.
_ALONE = ("in_thread", "shares_memory")
_usual = programs.scope


def fits(made: programs.Program) -> bool:
    """May ranks run this program together?"""
    lines = (*made.body, *(line for lines in made.rounds for line in lines))
    return not any(word in line for line in lines for word in _ALONE)


def _scope(made: programs.Program, wrapped: bool) -> dict[str, Any]:
    """The names of a program; some of its arrays have random layouts, alike on all ranks."""
    names, rng = _usual(made, wrapped), random.Random(str(made.body))

    def data(*given: Any) -> Any:
        a = programs.data(*given)
        plain = (
            a.dtype.kind in "biufc"
            and a.dtype.isnative
            and a.flags.c_contiguous
            and a.flags.writeable
            and a.ndim
        )
        return laid_out(rng, a) if plain and rng.random() < 0.4 else dc.asarray(a)

    return {**names, "data": data} if wrapped else names


def main(first: int, count: int, heard: bool = True) -> int:
    """Run the programs of these numbers; gives how many differ on this rank."""
    programs.scope = _scope
    wrong = ran = 0
    for seed in range(first, first + count):
        made = program(seed)
        if not fits(made):
            continue
        ran += 1
        told = programs.difference(made, heard, distribute_above=0, jit="off")
        if told is not None:
            wrong += 1
            sys.stderr.write(f"rank {world().rank}: # number {seed}: {told}\n{made.text()}\n")
    print(f"rank {world().rank}: {ran} programs, {wrong} differ\n", end="", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
