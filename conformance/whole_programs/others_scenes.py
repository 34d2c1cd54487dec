"""Scenes in which others see or change what a program does: tools, threads, handlers of signals."""

from __future__ import annotations

from .scenes import Scene, called
from .statements import Lines, Writer, indented

__all__ = ["OTHERS_SCENES"]

_STEPS = [
    "s += helper{s}(v)",
    "s += v * 0.5",
    "if v > 3:\n    continue",
    "if s > 90: break",
    "if k % 3:\n    s -= 1\nelif k > 7:\n    s += helper{s}(k)\nelse:\n    x[k % 8] += 1",
    "for j in range(3):\n    s += j\n    if j > k: break\nelse:\n    s += 1",
    "try:\n    s += 1 / (k % 4)\nexcept ZeroDivisionError:\n    s += 2\nfinally:\n    t += 1",
    "a = s + 1; t = a * 2",
    "t = (s +\n     k)",
    "while t > 9:\n    t -= 4",
    "if s < -50:\n    return s",
    "t += sum(x[j] for j in range(3))",
]
# A tool is set before `work` is called, in it, or in the middle of its loop: AT is None, -1 or 2.
_TRACER = """\
def tracer{s}(frame, event, argument):
    code = frame.f_code
    if code.co_name not in ("work{s}", "helper{s}"): return None
    last = max(line or 0 for *_, line in code.co_lines())
    SEEN{s}.append((code.co_name, event, event != "call" and frame.f_lineno - last))
    return tracer{s}

def begin{s}(k):
    if k == AT{s}:
        sys._getframe(1).f_trace = tracer{s}
        sys.{tool}(tracer{s})

def traced{s}(n):
    global AT{s}
    SEEN{s}.clear()
    AT{s} = {at}
    if AT{s} is None: sys.{tool}(tracer{s})
    try: work{s}(np.arange(8.0), n)
    finally: sys.{tool}(None)
    AT{s} = 99
    return len(SEEN{s}), SEEN{s}"""
_POLLS = [
    "while not FLAG and k < n: k += 1",
    "for k in range(n):\n    if FLAG: break",
    "while k < n:\n    stop = FLAG\n    if stop: break\n    k += 1",
    "while k < n and not (FLAG and k > 5):\n    k += 1\n    t += k % 3",
    "while k < n and not is_set{s}(flag): k += 1",
    "for k in range(n):\n    t += k % 5\n    for j in range(2):\n        if FLAG > j: return True",
]
_FLAGS = {
    "[0]": "flag[0]",
    "np.zeros(1)": "flag[0]",
    "{'a': 0}": "flag['a']",
    "SimpleNamespace(a=0)": "flag.a",
}


def tools(w: Writer, s: int) -> Lines:
    """Write a function of which a tool sees the lines or the calls, before and after its code is compiled."""
    steps = [line for _ in range(w.between(2, 4)) for line in w.pick(_STEPS).format(s=s).split("\n")]
    loop = w.pick(["for k, v in enumerate(x):", "for k in range(n):\n    v = x[k % 8]"]).split("\n")
    tool, at = w.pick(["settrace", "setprofile"]), w.pick([None, -1, 2])
    steps += [f"begin{s}(k)"] * (at == 2)
    body = ["s, t = 0.0, 0", *[f"begin{s}(-1)"] * (at == -1), *loop, *indented(steps), "t = t + 1"]
    return [
        "import sys", "", f"SEEN{s}, AT{s} = [], 99", "",
        f"def helper{s}(v):", *indented(["if v > 5:", "    return v - 3", "return v * 2"]), "",
        f"def work{s}(x, n):", *indented([*body, "return s + t"]), "",
        *_TRACER.format(s=s, tool=tool, at=at).split("\n"), "",
        f"def scene{s}():",
        *indented(called(w, f"work{s}, np.arange(8.0), 20", f"{s} worked", ["len(LOG)"], 3)),
        *indented([f"show('{s} traced', traced{s}({w.between(4, 20)}))"]),
    ]  # fmt: skip


def polls(w: Writer, s: int) -> Lines:
    """Write a loop that is ended by another thread, or by the handler of a signal."""
    flag, read = w.pick([*_FLAGS.items()])
    body = ["k = t = 0", *w.pick(_POLLS).format(s=s).split("\n"), "return k < n - 1"]
    loop = [line.replace("FLAG", read) for line in body]
    ends = [f"{read} = 1"]
    thread = ["threading.Timer(0.03, end).start()"]
    handler = ["signal.signal(signal.SIGALRM, end)", "signal.setitimer(signal.ITIMER_REAL, 0.03)"]
    return [
        "import signal", "import threading", "",
        f"def is_set{s}(flag):", *indented([f"return {read} > 0"]), "",
        f"def polled{s}(flag, n):", *indented(loop), "",
        f"def ended{s}(n):",
        *indented([f"flag = {flag}", "def end(*_):", *indented(ends)]),
        *indented([*(thread if w.chance(0.7) else handler), f"return polled{s}(flag, 10**12)"]), "",
        f"def scene{s}():",
        *indented([f"for _ in hot(40): polled{s}({flag}, 3000)"]),
        *indented([f"show('{s} ended', ended{s}(3))", f"show('{s} again', ended{s}(3))"]),
    ]  # fmt: skip


OTHERS_SCENES: dict[str, Scene] = {f.__name__: f for f in (tools, polls)}
