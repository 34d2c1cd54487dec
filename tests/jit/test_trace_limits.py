"""Sources that are far longer when everything is written out are refused, not compiled for minutes."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from loop_requests import check, request

from dcarray.core.errors import Untraceable
from dcarray.jit.loops.entry.entry_values import Function, LoopDescription
from dcarray.jit.loops.sites.loop_requests import LoopRequest
from dcarray.jit.loops.tracing.trace import trace

X = np.arange(20.0)

CONTINUE = """
    if x[{0}] > 0:
        if x[{0}] > 2:
            continue
        x[i] += {0}
"""


def doubling_calls(depth: int) -> Function:
    """A function that calls a function twice, which calls one twice, and so on."""

    last = Function("f", "def f(x):\n    return x.sum() + 1", "f.py", 1)
    for k in range(depth):
        last = Function(f"f{k}", "def f(x):\n    return f(x) + f(x * 2)", "f.py", 1, (("f", last),))
    return last


def long_request(source: str) -> LoopDescription:
    return request(source, dict(x=X, np=np))


@pytest.mark.parametrize(
    "source",
    [
        "for i in range(9):" + "".join(CONTINUE.format(k) for k in range(14)),
        "".join(f"{' ' * k}for i{k} in {[*range(20)]}:\n" for k in range(5)) + "     x[i1] += x[i2] * i3\n",
        "".join(f"x[{k}] = x[{k + 1}]\n" for k in range(19)) * 300,
    ],
    ids=["conditions", "loops", "statements"],
)
def test_what_is_too_long_is_refused(source: str) -> None:
    with pytest.raises(Untraceable, match="too long to compile"):
        trace(long_request(source))


@pytest.mark.parametrize(("depth", "refused"), [(3, False), (14, True)])
def test_calls_inside_of_calls(depth: int, refused: bool) -> None:
    described = long_request("y = f(x)")
    asked = replace(described, names=(*described.names, ("f", doubling_calls(depth))))
    with pytest.raises(Untraceable, match="too long to compile") if refused else nullcontext():
        trace(asked)


def test_a_region_of_too_many_statements_is_not_planned() -> None:
    asked = long_request("".join(f"x[{k % 20}] = x[{k * 7 % 20}] * {k}\n" for k in range(700)))
    assert trace(asked).region.body
    with pytest.raises(Untraceable, match="too many operations"):
        LoopRequest(asked, False, 1, None).plan_input()


def test_each_of_many_statements_reads_the_one_before() -> None:
    chain = "".join(f"y = np.sqrt(y + {k})\n" for k in range(300))
    check(f"y = x\n{chain}", dict(x=X[:4], np=np))
    names = "".join(f"y{k + 1} = y{k} * 0.5\n" for k in range(300))
    check(f"y0 = x + 1\n{names}", dict(x=X[:4]), live=["y300"])
