"""Others than the running statements, such as tools, in programs that print what they do without compiled
code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dcarray.core.native import BUILT

PROGRAMS = {
    "lines and calls": """
        import sys
        def helper(v):
            return v * 0.5 + 1
        def work(x, n):
            s, k = 0.0, 0
            while k < n:
                k += 1
                if x[k % 8] > 6:
                    s -= 1
                    continue
                if k > 90:
                    break
                s += helper(x[k % 8])
            for v in x:
                if v > 1e9:
                    return 3
                s += v
            t = s * 2
            u = t + 1
            if u > 3:
                u = u * 2
                s = u + t
            elif u < 0:
                s = u - 1
            y = x * s
            return y.sum() + u
        x = np.arange(8.0)
        print([work(x, 100 + k) for k in range(5)])
        seen = []
        def tracer(frame, event, argument):
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return tracer
        sys.settrace(tracer)
        work(x, 100)
        sys.settrace(None)
        print(len(seen), seen)
        seen.clear()
        sys.setprofile(tracer)
        work(x, 90)
        sys.setprofile(None)
        print(seen)
    """,
    "threads that end loops": """
        import threading
        class State:
            stop = False
        def array(flag, n):
            for i in range(n):
                if flag[0]: break
            return i < n - 1
        def both(flag, n):
            k = 0
            while not (flag[0] and flag[1]): k += 1
            return k >= 0
        def item(flag, n):
            k = 0
            while not flag[0] and k < n: k += 1
            return k < n
        def attribute(state, n):
            k = 0
            while not state.stop and k < n: k += 1
            return k < n
        def called(flag, n):
            k = 0
            while not is_set(flag) and k < n: k += 1
            return k < n
        def is_set(flag): return flag[0] > 0
        def end(flag):
            time.sleep(0.2)
            if isinstance(flag, State): flag.stop = True
            else: flag[0] = flag[1] = 1
        import time
        def started(function, flag):
            threading.Thread(target=end, args=(flag,)).start()
            print(function.__name__, function(flag, 10**11))
        for function in (array, both, called): started(function, np.zeros(2))
        started(item, [0, 0])
        started(attribute, State())
    """,
    "threads with items of one list": """
        import threading
        def work(found, t, n):
            for i in range(n):
                found[t] += i % 7
        for k in range(4):
            found = [0] * 4
            threads = [threading.Thread(target=work, args=(found, t, 40_000 + k)) for t in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(found)
    """,
    "handlers": """
        import signal
        class Late(Exception): pass
        def late(*args): raise Late
        def spin(x, n):
            t = 0.0
            for i in range(n): t += x[i % 8]
            return t
        def poll(stop, n):
            k = 0
            while not stop[0] and k < n: k += 1
            return k < n
        x = np.arange(8.0)
        for k in range(30): print(spin(x, 100_000 + k))
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 2)
        try: spin(x, 10**12)
        except Late: print("late")
        stop = [False]
        signal.signal(signal.SIGALRM, lambda *args: stop.__setitem__(0, True))
        signal.setitimer(signal.ITIMER_REAL, 2)
        print(poll(stop, 10**11))
    """,
    "signals that stop loops": """
        import signal
        class Late(Exception): pass
        def late(*args): raise Late
        signal.signal(signal.SIGALRM, late)
        def nested(a, n):
            for t in range(n):
                for j in range(a.shape[0]): a[j] += 1.0
        def waves(a, n):
            for t in range(n): a[1:-1] = a[1:-1] + 0.25 * (a[2:] - 2 * a[1:-1] + a[:-2])
        def single(a, n):
            s = 1
            for i in range(n): s = (s * 1103515245 + 12345 + i) % 2147483648
            return s
        def repeats(a, n):
            k = 1
            while k < n: k = (k * 3 + 1) % 1000003 + 2 * (k % 2)
            return k
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        def recurses(a, n):
            s = 0
            for i in range(n): s += fib(min(i, 60))
            return s
        def multiplies(a, n):
            m = a.reshape(200, 200)
            for t in range(n): m[...] = m @ m * 0.001
        for function in (nested, waves, single, repeats, recurses, multiplies):
            for size in (40_000,) if function is multiplies else (40_000, 1_000_000):
                a = np.ones(size)
                for k in range(3): function(a, 5)
                a[:] = 1.0
                signal.setitimer(signal.ITIMER_REAL, 0.4)
                try: function(a, 10**13)
                except Late: print(function.__name__)
                print(a.max() - a.min() <= 1.0, bool((np.diff(a) <= 0).all()), 0.0 <= a.sum() < 1e8)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_the_same(name: str, tmp_path: Path) -> None:
    if not BUILT and ("signals" in name or name == "handlers"):
        pytest.skip("only the C module has compiled code stopped")
    text = "import faulthandler\nimport numpy as np\nfaulthandler.dump_traceback_later(100, exit=True)\n"
    lines = PROGRAMS[name].splitlines()
    (tmp_path / "program.py").write_text(text + "\n".join(line[8:] for line in lines) + "\n")
    environment = {**os.environ, "DCARRAY_CACHE_DIR": str(tmp_path / "cache"), "DCARRAY_JIT": "eager"}
    found = [
        subprocess.run(
            [sys.executable, *way, "program.py"],
            env=environment, cwd=tmp_path, capture_output=True, text=True,
        )
        for way in ((), ("-m", "dcarray", "run"))
    ]  # fmt: skip
    assert found[1].stdout == found[0].stdout, found[1].stderr
    assert found[1].returncode == found[0].returncode == 0, found[1].stderr
