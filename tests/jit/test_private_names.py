"""Names in compiled code are those of Python's compiler."""

from typing import Any

import pytest

import dcarray as dc
from dcarray.jit.loops.sites.modules import compile_module

PRIVATE = """
class _A:
    def __init__(self): self.__x = 1.5
    def __m(self, __p): return self.__x * __p
    def get(self, n):
        __s = 0.0
        for i in range(n): __s += self.__m(i) - self.__x
        return __s
    def put(self, n):
        for i in range(n): self.__x = self.__x * 0.5 + i
        return sorted(vars(self).items())
class __:
    def __init__(self): self.__u = 1
    def go(self, n):
        for i in range(n): self.__u += i
        return vars(self)
for k in range(3): print(_A().get(50), _A().put(50), __().go(50))
"""
UNBOUND = """
def outer():
    def f(n, limit):
        s = 0
        for i in range(n): s += i if i < limit else late
        return s
    print(f(50, 99))
    try: f(50, 3)
    except NameError as error: print(error)
    late = 2
    print(f(50, 3))
    del late
    print(f(50, 99))
def g(n):
    global H
    s = 0
    for i in range(n): s += H if i > 90 else i
    return s
for k in range(3): outer(); print(g(50))
"""
RETURNS = """
def h(n):
    for j in range(n):
        if j * j > 90: return j + 0.5
    else: return -1
for _ in range(30): t = _ * 2
for k in range(3): print(h(50), h(3), _)
print([name for name in globals() if " " in name])
"""


def printed(text: str, has_sites: bool) -> list[Any]:
    found: list[Any] = []
    names: dict[str, Any] = {"__name__": "__main__", "print": lambda *values: found.append(str(values))}
    exec(
        compile_module(text, "<names>", names, True) if has_sites else compile(text, "<names>", "exec"), names
    )
    return found


@pytest.mark.parametrize("text", [PRIVATE, UNBOUND, RETURNS])
def test_names(text: str) -> None:
    with dc.options(jit="eager", cache_dir=None):
        assert printed(text, True) == printed(text, False)
