"""Scenes with lists of numbers: of one or two types, of several lengths, growing and shrinking."""

from __future__ import annotations

from .scenes import Scene, called
from .statements import Lines, Writer, indented

__all__ = ["LIST_SCENES"]

# M and R are lists of lists, the second of several lengths; x is of floats, k of ints, z of complex numbers,
# l grows and shrinks.  i and j are loops' variables.
_STATEMENTS = [
    "M[i][j] = M[i][j - 1] * 2",
    "M[i][j] = x[j]",
    "M[i][j] = i - 3",
    "M[i][j] = -M[i][j]",
    "M[i][j] += M[i - 1][j] - x[j]",
    "M[i][j] = M[i][j] // 3",
    "M[i][j] %= 4",
    "M[i][j] = max(M[i][j], k[j])",
    "M[i][j] = abs(M[i - 1][j]) if M[i][j] < 1 else s",
    "M[i][j], M[i][j - 1] = M[i][j - 1], M[i][j]",
    "k[j] = int(M[i][j])",
    "x[j] = M[i][j] * 0.5",
    "if M[i][j]: s = M[i][j]",
    "if x[j] > 0: s += x[j]",
    "s = 0",
    "t = t[1], M[i][j]",
    "s += t[0]",
    "l.append(M[i][j])",
    "l.append(i if j % 2 else x[j])",
    "if l: s += l.pop()",
    "s -= l.pop()",
    "if len(l) > 2: M[i][j] = l[-1] + l[1]",
    "while l and l[-1] > i: l.pop()",
    "for v in l: s += v",
    "R[i][j % len(R[i])] += x[j]",
    "for v in R[i]: s -= v",
    "row = R[i]; row[0] = len(row)",
    "M[i][j] = R[k[j] % len(R)][-1]",
    "z[j] = z[j] * z[j - 1] + M[i][j]",
    "z[j] = cmath.sqrt(z[j]) / (x[j] - 1j)",
    "s += abs(z[j]) + z[j].imag",
    "try: s += 1 / k[j]\nexcept ZeroDivisionError: s += 2",
    "try: s += l[j]\nexcept IndexError as error: t = (0, len(str(error)))",
    "for d in range(1, 9, i + 1): s += d",
    "m = [j]\nwhile len(m) < 4: m.append(m[-1] + x[j])\ns += m.pop()",
    "s = s % 61",
]
_NUMBERS = ["0", "1", "-3", "2.0", "0.5", "-0.0", "1.75", "4"]


def _list(w: Writer, length: int, numbers: list[str]) -> str:
    return f"[{', '.join(w.pick(numbers) for _ in range(length))}]"


def number_lists(w: Writer, s: int) -> Lines:
    """Write a function that creates lists, and another one that changes them in loops."""
    numbers = w.pick([_NUMBERS, _NUMBERS, ["1", "2", "-5"], ["0.5", "-1.25"]])
    rows, width = w.between(2, 5), w.between(2, 6)
    body: Lines = []
    for _ in range(w.between(1, 5)):
        body += w.pick(_STATEMENTS).split("\n")
    walk = [
        "t = (0, 1.5)",
        f"for i in range({rows}):",
        *indented([f"for j in range(1, {width}):", *indented(body)]),
    ]
    made = [
        f"M = [{', '.join(_list(w, width, numbers) for _ in range(rows))}]",
        f"R = [{', '.join(_list(w, w.between(1, 4), numbers) for _ in range(rows))}]",
        *(["R[1] = R[0]"] if w.chance(0.2) else []),
        f"x = {_list(w, width, ['0.5', '-1.5', '2.25', '-0.0'])}",
        f"k = {_list(w, width, ['0', '1', '2', '-1', '7'])}",
        f"z = {_list(w, width, ['1j', '(0.5-2j)', 'complex(-0.0, 1.0)'])}",
        f"l = {_list(w, w.between(0, 3), numbers)}",
        *(["l = x"] if w.chance(0.1) else []),
        f"s = walk{s}(M, R, x, k, z, l, {w.pick(numbers)} + 0 * n)",
        "return s, M, R, x, k, z, l",
    ]
    return [
        f"def walk{s}(M, R, x, k, z, l, s):", *indented([*walk, "return s, t"]), "", "",
        f"def made{s}(n):", *indented(made), "", "",
        f"def scene{s}():", *indented(called(w, f"made{s}, 5", f"{s} lists", ["len(LOG)"])),
    ]  # fmt: skip


LIST_SCENES: dict[str, Scene] = {"number_lists": number_lists}
