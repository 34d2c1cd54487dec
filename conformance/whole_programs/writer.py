"""The writer of a whole random program."""

from __future__ import annotations

from .more_scenes import ALL_SCENES
from .prelude import PRELUDE
from .statements import Writer, indented

__all__ = ["HEAD", "kinds", "program"]

HEAD = (
    "import array\nimport ctypes\nimport functools\nimport mmap\n"
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
"""
)


def kinds(seed: int) -> list[str]:
    """Return the names of the scenes in the program with a seed."""
    return _choose(Writer(seed))


def _choose(w: Writer) -> list[str]:
    return [
        w.pick([*ALL_SCENES, "callback", "callback", "attributes", "owners"]) for _ in range(w.between(1, 3))
    ]


def program(seed: int) -> str:
    """Return the source of the program with a seed."""
    w = Writer(seed)
    chosen = _choose(w)
    lines = [f"# program {seed}: {', '.join(chosen)}", HEAD]
    for s, name in enumerate(chosen):
        lines += ["", *ALL_SCENES[name](w, s), ""]
    calls = [f"shown('scene {s}', scene{s})" for s in range(len(chosen))]
    lines += ["", "def main():", *indented(calls), "", "", 'if __name__ == "__main__":', "    main()", ""]
    return "\n".join(lines)
