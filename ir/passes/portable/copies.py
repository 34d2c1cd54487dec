"""Copy propagation: readers of a copy read its source, or the source's writer writes the copy's target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Call, Compute, Expr, Gather, Load, Nest, Stmt, Window
from dcarray.ir.ops import CALLS
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.flow import Block, Use, block_pass
from dcarray.ir.passes.match import containing_map, domain_map, maps_into, writes_all


def is_copy(stmt: Stmt | None) -> bool:
    """Whether the statement only moves values from one window to another."""
    return isinstance(stmt, Compute) and stmt.combine is None and isinstance(stmt.body, Load)


def _source(stmt: Stmt | None) -> Window:
    assert isinstance(stmt, Compute) and isinstance(stmt.body, Load)
    return stmt.body.window


def _through(window: Window, given: Window, other: Window) -> Window | None:
    """Return ``window``, of ``given``'s array, as a window of ``other``'s array, given that ``given`` and
    ``other`` correspond point by point; None if ``given`` is not proved to contain it."""
    amap = containing_map(given, window)
    return None if amap is None else windows.compose(other, amap, window.shape)


# ---- readers of a copy read its source ----------------------------------------------------------------
def can_forward(block: Block, pos: int, uses: list[Use]) -> Reason | None:
    """Return why the readers of the copy at ``pos`` must not read its source instead."""
    copy = block.stmts[pos]
    if not isinstance(copy, Compute) or not is_copy(copy):
        return Reason("the statement is not a plain copy")
    source = _source(copy)
    for use in uses:
        reader = block.stmts[use.pos]
        if use.kind not in ("load", "call"):
            return Reason(f"{copy.target.array} is read by more than a plain load", (use.window,))
        if use.kind == "call" and use.window in block.writes[use.pos]:  # an argument that it changes
            return Reason(f"{copy.target.array} is written where it is read", (use.window,))
        moved = _through(use.window, copy.target, source)
        if moved is None:
            return Reason(f"{copy.target.array} is read where the copy may not reach", (use.window,))
        written = block.writer_between(pos, use.pos, moved)
        if written is not None:
            return Reason(f"{source.array} changes before its copy is read", (moved, written))
        for target in block.writes[use.pos]:
            if block.facts.overlap(target, moved) is False:
                continue
            if isinstance(reader, Compute) and reader.combine is None and windows.same(target, moved):
                continue
            return Reason(f"{source.array} is written at other points than its copy is read", (target, moved))
    return None


def _forward(stmt: Stmt | None, copy: Compute) -> Stmt:
    """Return the reader with the copy's source in place of the copy."""
    source = _source(copy)

    def moved(window: Window) -> Window:
        if window.array != copy.target.array:
            return window
        return _through(window, copy.target, source) or window

    return _rename(stmt, moved)


def _rename(stmt: Stmt | None, moved: Callable[[Window], Window]) -> Stmt:
    """Return the statement with each window that it reads replaced by ``moved(window)``."""

    def fn(node: Load | Gather) -> Expr:
        if isinstance(node, Gather):
            return node
        window = moved(node.window)
        return node if window is node.window else Load(window, node.dtype)

    if isinstance(stmt, Compute):
        return replace(stmt, body=windows.map_loads(stmt.body, fn))
    if isinstance(stmt, Nest):
        return replace(
            stmt, body=tuple(replace(part, body=windows.map_loads(part.body, fn)) for part in stmt.body)
        )
    assert isinstance(stmt, Call)
    return replace(stmt, reads=tuple(moved(window) for window in stmt.reads))


def _try_forward(block: Block, pos: int, copy: Compute, log: Log) -> bool:
    uses, reason = block.uses(pos, copy.target)
    if not uses:
        return False
    reason = reason or can_forward(block, pos, uses)
    name = copy.target.array
    if reason is not None:
        log.refused("copies", f"the copy {name} stays: {reason.text}", copy.loc)
        return False
    for q in dict.fromkeys(use.pos for use in uses):
        block.replace(q, _forward(block.stmts[q], copy))
    block.replace(pos, None)
    log.done("copies", f"readers of the copy {name} read {_source(copy).array}", copy.loc)
    return True


# ---- what is only copied is written to its place ------------------------------------------------------
def can_place(block: Block, pos: int, at: int, over: bool = False) -> Reason | None:
    """Return why the statement at ``pos`` must not write straight to the target of the copy at ``at`` instead
    of a temporary, else None; ``over``: a library call may overwrite its operand."""
    maker, copy = block.stmts[pos], block.stmts[at]
    assert isinstance(copy, Compute)
    temp, final = _source(copy), copy.target
    facts = block.facts
    array = facts.arrays[temp.array]
    if block.nested or facts.roots[temp.array] in facts.shared:
        return Reason(f"{temp.array} may be used elsewhere", (temp,))
    if not isinstance(maker, Compute | Call) or [w.array for w in block.writes[pos]].count(temp.array) != 1:
        return Reason(f"{temp.array} is made by more than one statement", (temp,))
    if any(w.array == temp.array for w, _ in block.reads[pos]):
        return Reason(f"{temp.array} is made from itself", (temp,))
    if containing_map(temp, windows.identity(array)) is None:
        return Reason(f"only a part of {temp.array} is copied", (temp,))
    (written,) = [w for w in block.writes[pos] if w.array == temp.array]
    if not writes_all(written, temp):
        return Reason(f"{temp.array} is not written as a whole", (written,))
    for window in [w for w in block.writes[pos] if w is not written] + [w for w, _ in block.reads[pos]]:
        if over and _may_be_over(maker, _onto(written, temp, final), window):
            continue
        if facts.overlap(final, window) is not False:
            return Reason(f"{final.array} is also used by the statement that makes {temp.array}", (window,))
    touched = block.toucher_between(pos, at, final)
    if touched is not None:
        return Reason(f"{final.array} is in use before the copy", (final, touched))
    last = at
    for q in block.touching(temp.array, pos):
        if q == at:
            continue
        if any(w.array == temp.array for w in block.writes[q]):
            return Reason(f"{temp.array} is made by more than one statement", (temp,))
        for window, kind in block.reads[q]:
            if window.array != temp.array:
                continue
            if kind not in ("load", "call"):
                return Reason(f"{temp.array} is read by more than a plain load", (window,))
            reason = _may_reread(block, q, window, temp, final)
            if reason is not None:
                return reason
            last = max(last, q)
    changed = block.writer_between(at, last, final)
    if changed is not None:
        return Reason(f"{final.array} changes before {temp.array} is last read", (final, changed))
    return None


def _may_be_over(maker: Stmt | None, result: Window, window: Window) -> bool:
    """Whether ``maker`` is a library call that may write its ``result`` over its operand
    ``window``."""
    if not isinstance(maker, Call) or (k := CALLS[maker.op].over) is None:
        return False
    matrices = all(len(read.shape) > 1 for read in maker.reads)
    return matrices and window is maker.reads[k] and windows.same(result, window)


def _may_reread(block: Block, q: int, window: Window, temp: Window, final: Window) -> Reason | None:
    """Return why the statement at ``q`` must not read the copy's target instead of the temporary; else
    None."""
    moved = _through(window, temp, final)
    if moved is None:
        return Reason(f"{temp.array} is read where it was not written", (window,))
    reader = block.stmts[q]
    for target in block.writes[q]:
        if block.facts.overlap(target, moved) is False:
            continue
        if isinstance(reader, Compute) and reader.combine is None and windows.same(target, moved):
            continue
        return Reason(f"{final.array} is written at other points than {temp.array} is read", (target, moved))
    return None


def place_result(block: Block, at: int, copy: Compute, log: Log, over: bool = False) -> bool:
    """Let the writer of a temporary write to the target of its copy at ``at``, and drop the copy, if that is
    legal; return whether it was.  ``over``: a library call may overwrite its operand for it."""
    temp, final = _source(copy), copy.target
    if block.facts.roots[temp.array] in block.facts.kept:
        return False
    makers = [q for q in block.before(temp.array, at) if any(w.array == temp.array for w in block.writes[q])]
    if len(makers) != 1:
        return False
    pos = makers[0]
    reason = can_place(block, pos, at, over)
    if reason is not None:
        log.refused("copies", f"{temp.array} is copied to {final.array}: {reason.text}", copy.loc)
        return False

    def moved(window: Window) -> Window:
        return (_through(window, temp, final) or window) if window.array == temp.array else window

    maker = block.stmts[pos]
    if isinstance(maker, Compute):
        placed: Stmt = replace(maker, target=_onto(maker.target, temp, final))
    else:
        assert isinstance(maker, Call)
        placed = replace(
            maker, writes=tuple(_onto(w, temp, final) if w.array == temp.array else w for w in maker.writes)
        )
    readers = [q for q in block.touching(temp.array, pos) if q != at]
    block.replace(pos, placed)
    block.replace(at, None)
    for q in readers:
        block.replace(q, _rename(block.stmts[q], moved))
    log.done("copies", f"{temp.array} is made in its final place, {final.array}", copy.loc)
    return True


def _onto(written: Window, temp: Window, final: Window) -> Window:
    """Return the window of the copy's target that corresponds to a window that writes the temporary."""
    amap = domain_map(temp, written)
    assert amap is not None and maps_into(amap, written.shape, temp.shape)
    return windows.compose(final, amap, written.shape)


def _sweep(block: Block, log: Log) -> bool:
    changed = False
    for pos, stmt in enumerate(block.stmts):
        if isinstance(stmt, Compute) and is_copy(stmt):
            changed |= _try_forward(block, pos, stmt, log)
    for pos, stmt in enumerate(block.stmts):
        if isinstance(stmt, Compute) and is_copy(stmt):
            changed |= place_result(block, pos, stmt, log)
    return changed


COPIES = block_pass("copies", _sweep, is_copy)
