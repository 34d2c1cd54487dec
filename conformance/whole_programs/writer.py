"""The writer of a whole random program."""

from __future__ import annotations

from .more_scenes import ALL_SCENES
from .prelude import PRELUDE
from .statements import Writer, indented

__all__ = ["HEAD", "kinds", "program"]

HEAD = (
    "import array\nimport copy\nimport ctypes\nimport functools\nimport mmap\nimport os\n"
    "import threading\nimport traceback\nimport types\n"
    + PRELUDE
    + """

def quiet(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def locked(a):
    a.flags.writeable = False
    return a


def told(tag, function, *args):
    try:
        print(tag, repr(function(*args)), sep=" | ")
    except Exception as error:
        print(tag, type(error).__name__, str(error), sep=" | ")
        while error:
            for frame in traceback.extract_tb(error.__traceback__):
                line = "" if isinstance(error, UnboundLocalError) else frame.line  # 3.11 may mistake it
                frame.name == "accelerated" or print(f"    {frame.name}: {line}")  # but for the wrapper
            error = error.__cause__ or error.__context__


def forked(function, *args):
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(there, repr(quiet(function, *args)).encode())
        os._exit(0)
    os.close(there)
    with open(here) as file:
        return file.read(), os.waitpid(child, 0)[1]


def elsewhere(function):
    names = {k: v + 1 if type(v) is int else v for k, v in function.__globals__.items()}
    inner = getattr(function, "__wrapped__", function)  # the code of what stands for it is not promised
    return types.FunctionType(inner.__code__, names, function.__name__, function.__defaults__)


def beside(function, *args):
    thread = threading.Thread(target=quiet, args=(elsewhere(function), *copy.deepcopy(args)))
    thread.start()
    found = [forked(function, *args) for _ in range(2)]
    thread.join()
    return found


def in_thread(function, *args):
    found = []
    thread = threading.Thread(target=lambda: found.append(quiet(function, *args)))
    thread.start()
    thread.join()
    return found
"""
)

_OFTEN = ["language"] * 30 + ["operands"] * 10


def kinds(seed: int, only: str | None = None) -> list[str]:
    """Return the names of the scenes in the program with a seed."""
    return _choose(Writer(seed), only)


def _choose(w: Writer, only: str | None) -> list[str]:
    return [only] if only else [w.pick([*ALL_SCENES, *_OFTEN]) for _ in range(w.pick([1, 1, 2]))]


def program(seed: int, only: str | None = None) -> str:
    """Return the source of the program with a seed: of random scenes, or of one of the kind ``only``."""
    w = Writer(seed)
    chosen = _choose(w, only)
    lines = [f"# program {seed}: {', '.join(chosen)}", HEAD, "import cmath", "", "import numpy as np", ""]
    for s, name in enumerate(chosen):
        lines += ["", *ALL_SCENES[name](w, s), ""]
    calls = [f"shown('scene {s}', scene{s})" for s in range(len(chosen))]
    lines += ["", "def main():", *indented(calls), "", "", 'if __name__ == "__main__":', "    main()", ""]
    return "\n".join(lines)
