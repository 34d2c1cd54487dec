"""What planning a region takes, counted: calls of functions, and messages that are listed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from dcarray.comm.exchange.exchange_plan import Transfer
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.planner import plan
from dcarray.ir.nodes import Region


def forget() -> None:
    """Forget what was planned before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dcarray.comm"):
            for value in vars(module).values():
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def planned(region: Region, layouts: Mapping[str, Layout | None], ranks: int, rank: int) -> tuple[int, int]:
    """How many functions are called for a plan that was never made, and how many messages it lists."""
    forget()
    _, calls, listed = counted(lambda: plan(region, layouts, ranks, rank))
    return calls, listed


def counted(what: Callable[[], Any]) -> tuple[Any, int, int]:
    """What comes of something, how many functions it calls, and how many messages it lists."""
    calls = listed = 0
    transfer: Any = Transfer.__init__.__code__

    def event(frame: FrameType, what: str, _: object) -> None:
        nonlocal calls, listed
        calls += what in ("call", "c_call")
        listed += what == "call" and frame.f_code is transfer

    before = sys.getprofile()
    sys.setprofile(event)
    try:
        found = what()
    finally:
        sys.setprofile(before)
    return found, calls, listed
