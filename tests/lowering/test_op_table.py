"""The table of operations and targets: which loops each target compiles, and why not the others.

``pytest tests/lowering/test_op_table.py --rewrite`` writes ``op_table.txt`` anew.  What is not
compiled is run by the region interpreter, on the host.
"""

from pathlib import Path

import op_cases
import pytest

from dcarray.ir.ops import OPS
from dcarray.lowering import targets
from dcarray.lowering.errors import Unsupported

TABLE = Path(__file__).with_name("op_table.txt")
TARGETS = targets.names()


def reason(name, kinds, result, target):
    """Why a target does not compile a loop; empty if it does."""
    made = op_cases.region(name, kinds, result, 100)
    try:
        kernel, _ = target.schedule(made.body[0], made, cores=2, repeated=False, exact=target.is_exact)
        target.emit(kernel)
    except Unsupported as error:
        return str(error)
    return ""


def line(name, target):
    """The compiled loops of an operation, and the reasons for the others, as text."""
    done, refused = "", {}
    for kinds, result in op_cases.loops(name):
        why = reason(name, kinds, result, targets.get(target))
        loop = kinds[-1].char if name != "cast" else kinds[0].char + result.char
        if why:
            refused.setdefault(why, []).append(loop)
        else:
            done += loop + " " * (name == "cast")
    if name == "cast" and not refused:
        done = "all"
    parts = [done, *(f"not {''.join(dict.fromkeys(loops))}: {why}" for why, loops in refused.items())]
    return f"{name:16}{target:8}" + "; ".join(part for part in parts if part)


@pytest.mark.parametrize("name", OPS)
def test_what_targets_compile_is_in_the_table(golden, name):
    golden(TABLE, "\n".join(line(name, target) for target in TARGETS), prefix=f"{name:16}")


def test_the_table_has_no_other_operations():
    assert {row.split()[0] for row in TABLE.read_text().splitlines()} == set(OPS)
