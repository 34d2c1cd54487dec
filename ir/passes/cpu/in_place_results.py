"""In-place library results: ``A[:] = A @ B`` writes over its operand, without a temporary.

This is for CPUs alone: all arrays are in one memory, so that tiles of the result can be written one by one.
"""

from __future__ import annotations

from dcarray.ir.nodes import Call, Compute, Region
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Block, each_block
from dcarray.ir.passes.portable.copies import is_copy, place_result


def _run(region: Region, log: Log) -> Region:
    def sweep(block: Block) -> bool:
        copies = [(pos, stmt) for pos, stmt in enumerate(block.stmts) if is_copy(stmt)]
        return any([place_result(block, pos, s, log, True) for pos, s in copies if isinstance(s, Compute)])

    return each_block(region, sweep, lambda stmt: isinstance(stmt, Call))


IN_PLACE_RESULTS = Pass("in_place_results", _run)
