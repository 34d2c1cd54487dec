"""Statements on a slow device against the interpreter."""

import numpy as np
from kernel_machine import Machine
from random_statements import check_agreement, memories

from dcarray.ir import interp
from dcarray.lowering.gpu.scheduler import schedule
from dcarray.lowering.gpu.schedules.blocks import Limits
from dcarray.lowering.kernel.verify import check

SMALL = Limits(threads=8, serial=2, least=2, blocks=3, narrow=2, short=2, tile=4, strip=4, busy=2)


def run_both(region, symbols=None, seed=0, limits=SMALL):
    """Run the region by the interpreter and by its kernels, on equal memory; return the kernels."""
    symbols = symbols or {}
    memory, (flats,) = memories(region, symbols, 1, seed)
    with np.errstate(all="ignore"):
        interp.run(region, memory, symbols)
        kernels = []
        for stmt in region.body:
            made, binding = schedule(stmt, region, limits)
            check(made)
            kernels.append(made)
            Machine(made, binding, flats, symbols)
    check_agreement(region, flats, memory, symbols)
    return kernels
