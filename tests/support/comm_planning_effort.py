"""The effort of planning a region: numbers of function calls and of listed messages."""

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from dcarray.comm.exchange.exchange_plan import Transfer
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.planner import plan
from dcarray.ir.nodes import Region


def forget() -> None:
    """Clear the caches of earlier plans."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dcarray.comm"):
            for value in vars(module).values():
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def planned(region: Region, layouts: Mapping[str, Layout | None], ranks: int, rank: int) -> tuple[int, int]:
    """The numbers of calls and listed messages of a plan made with empty caches."""
    forget()
    _, calls, listed = counted(lambda: plan(region, layouts, ranks, rank))
    return calls, listed


def counted(what: Callable[[], Any]) -> tuple[Any, int, int]:
    """The result of a function, with the numbers of calls and of listed messages."""
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
