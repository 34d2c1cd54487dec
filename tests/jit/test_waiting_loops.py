"""Loops whose ends depend on what others change are left to Python."""

import ast

from dcarray.jit.loops.syntax.waiting import ends_by_itself, may_be_ended

WAITING = (
    "while flag[0] == 0: k += 1", "while not (a[0] and b[k0]): c[0] = k",
    "while True:\n    stop = flag[0]\n    if stop: break\n    k = (k + 1) % 9",
    "while turn[0] != me:\n    if flag[0] > 0: continue\n    k += 1\n",
)  # fmt: skip
POLLING = (
    "while k < n and not flag[0]: k += 1", "while k < n and self__dot__stop: k += 1",
    "while k < n and not done(flag): k += 1", "for i in x:\n    if flag[1] > 0: break",
    "while k < n:\n    stop = flag[0]\n    k += 1\n    if stop: break",
    "for i in x:\n    while k < i and not flag[0]: k += 1", "while k < n and len(q) == 0: k += 1",
    "for i in x:\n    if stop: break\n    k += i", "while k < n and not (hits or i): k, i = k + 1, k",
    "for i in x:\n    for j in range(2):\n        v = j + 1\n        if flag[0] >= v: return i",
)  # fmt: skip
ALONE = (
    "while k < n: k += 1", "while i < n and a[i] < v: i += 1", "while a[0] < 9: a[0] += 1",
    "while i < a.shape[0] and abs(z) < r: z, i = z * z + c, i + 1", "while i * i <= math.sqrt(n): i += 1",
    "while left:\n    left.pop()", "while self__dot__n < 9: self__dot__n = self__dot__n + 1",
    "while error > limit:\n    y = f(x)\n    error = y - x\n    x = y",
)  # fmt: skip


BOUNDED = (
    "while k < self__dot__limit: k += 1", "for v in x:\n    if v > best[0]: return v",
    "for i in x:\n    for j in y:\n        if a[i] > 3: break",
    "for i in x:\n    if flag[0]: continue\n    k += 1",
    "for i in range(n):\n    if s == 3: break\n    s = u[0] + i",
)  # fmt: skip


def test_loops_that_wait_are_known() -> None:
    def loop(text: str) -> ast.While:
        return ast.parse(text).body[0]  # type: ignore[return-value]

    assert not any(ends_by_itself(loop(text)) for text in WAITING)
    assert all(ends_by_itself(loop(text)) for text in (*POLLING, *ALONE) if text.startswith("while"))
    assert [text for text in POLLING if not may_be_ended(loop(text))] == []
    assert [text for text in (*ALONE, *BOUNDED) if may_be_ended(loop(text))] == []
