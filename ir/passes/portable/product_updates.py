"""Updates by products: ``r = a @ b + beta * r`` is one library call, which stores no product.

Into the call go the sign of the product, and the sign and a factor of ``r``.  Libraries may round their term
once less.  These stay outside:

* factors of the product: a library may multiply an operand by them, or the sum, which decides what overflows.
  If the factor is 0, it does not look at the operands, which may have NaNs.
* complex numbers: a library multiplies by 1, too, which makes NaNs of infinities.
* sums with another array or with rows: they would have to be copied to the result first, and that moves as
  many bytes as a kernel that adds them.

A factor of ``r`` that is an argument may be 0: who runs the call must not skip the multiplication then.
"""

from __future__ import annotations

import math

from dcarray.ir.analysis.effects import Reason
from dcarray.ir.build import is_scalar_argument
from dcarray.ir.nodes import Apply, Array, Call, Compute, Const, Expr, Load, Window
from dcarray.ir.ops import const_value
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.flow import Block, call_pass
from dcarray.ir.records import record
from dcarray.ir.windows import injective, same

_SIGNS = {"add": (1, 1), "subtract": (1, -1)}


@record(frozen=True, slots=True)
class Update:
    """The factors of ``alpha * product + beta * factor * target``.

    Attributes
    ----------
    alpha : int
        1 or -1.
    beta : float
        Finite, and not 0.
    factor : Window or None
        A scalar argument; None for 1.
    """

    alpha: int
    beta: float
    factor: Window | None = None


def update_of(stmt: Compute, product: Window, arrays: dict[str, Array]) -> Update | None:
    """Return how a statement adds the elements of ``product`` to those of its target; None if it does
    something else."""
    body = stmt.body
    if stmt.combine is not None or stmt.scan is not None:
        return None
    if not isinstance(body, Apply) or body.op not in _SIGNS:
        return None
    for k, one in enumerate(body.args):
        if isinstance(one, Load) and same(one.window, product):
            alpha, beta = _SIGNS[body.op][k], _SIGNS[body.op][1 - k]
            return _scaled(body.args[1 - k], stmt.target, alpha, beta, arrays)
    return None


def _scaled(term: Expr, target: Window, alpha: int, sign: int, arrays: dict[str, Array]) -> Update | None:
    """Return the update with a term that is ``target`` or a multiple of it; None if it is something else."""
    if isinstance(term, Load):
        return Update(alpha, float(sign)) if same(term.window, target) else None
    if not isinstance(term, Apply) or term.op != "multiply":
        return None
    for factor, other in (term.args, term.args[::-1]):
        if not isinstance(other, Load) or not same(other.window, target):
            continue
        if isinstance(factor, Const):
            value = float(const_value(factor))
            return Update(alpha, sign * value) if value and math.isfinite(value) else None
        if isinstance(factor, Load) and is_scalar_argument(arrays[factor.window.array]):
            return Update(alpha, float(sign), Window(factor.window.array, (), ()))
    return None


def can_update(block: Block, pos: int, at: int) -> Reason | None:
    """Return why the product at ``pos`` must not be computed by the statement at ``at``, which adds it to its
    target; None if it may."""
    call, stmt, facts = block.stmts[pos], block.stmts[at], block.facts
    assert isinstance(call, Call) and isinstance(stmt, Compute)
    (product,), target = call.writes, stmt.target
    if facts.arrays[product.array].dtype.char not in "fd":
        return Reason("it is not of real numbers")
    windows = (*call.reads, product, target)
    if len({facts.arrays[window.array].dtype for window in windows}) > 1 or not product.shape:
        return Reason("the arrays have several types, or no axes")
    for window in windows:
        axes = [ix.axis for ix in window.index if ix.axis is not None]
        if len(set(axes)) < len(axes):
            return Reason(f"{window.array} is read or written along a diagonal", (window,))
    if injective(target) is not True:
        return Reason(f"{target.array} has elements that are written twice", (target,))
    for operand in call.reads:
        if facts.overlap(target, operand) is not False:
            return Reason(f"{target.array} is an operand", (target, operand))
        written = block.writer_between(pos, at, operand)
        if written is not None:
            return Reason(f"{operand.array} changes in between", (operand, written))
    return None


def _try(block: Block, pos: int, call: Call, log: Log) -> bool:
    (product,) = call.writes
    uses, reason = block.uses(pos, product)
    if reason is not None or len(uses) != 1 or uses[0].kind != "load":
        return False
    at = uses[0].pos
    stmt = block.stmts[at]
    if not isinstance(stmt, Compute) or len(stmt.target.shape) != len(product.shape):
        return False
    update = update_of(stmt, product, block.facts.arrays)
    if update is None:
        return False
    reason = can_update(block, pos, at)
    name = stmt.target.array
    if reason is not None:
        log.refused("product_updates", f"the product {product.array} is stored: {reason.text}", call.loc)
        return False
    factor = () if update.factor is None else (update.factor,)
    attrs = ("alpha", update.alpha), ("beta", update.beta)
    block.replace(pos, None)
    block.replace(at, Call("blas.gemm", (*call.reads, stmt.target, *factor), (stmt.target,), attrs, stmt.loc))
    log.done("product_updates", f"{name} is updated by the call that multiplies", stmt.loc)
    return True


PRODUCT_UPDATES = call_pass("product_updates", "blas.matmul", _try)
