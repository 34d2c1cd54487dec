"""Large temporaries that never live at the same time become one array."""

from itertools import pairwise

from dcarray.ir.nodes import TimeTiles
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.storage_coalescing import STORAGE_COALESCING
from dcarray.ir.text import parse

STEP = "{1}[i,j] = add({0}[i,j], {0}[i,j]) for i<N, j<1000\n"


def chain(*names):
    body = "".join(STEP.format(a, b) for a, b in pairwise(names))
    temps = "".join(f"  temp {name}: f64[N, 1000]\n" for name in dict.fromkeys(names[1:-1]))
    return f"region(N: int>=2000) {{\n in x: f64[N, 1000]\n{temps} out y: f64[N, 1000]\n{body}}}"


def test_a_chain_goes_back_and_forth(check):
    log = check(STORAGE_COALESCING, chain(*"xabcdey"), chain(*"xababay"))
    assert "c lies where a was" in str(log)


def test_few_or_small_ones_stay(check):
    check(STORAGE_COALESCING, chain(*"xabcy"), None)
    check(STORAGE_COALESCING, chain(*"xabcdey").replace("1000", "100").replace("2000", "9"), None)


def test_what_is_needed_later_keeps_its_place(check):
    more = "y[i,j] = add(b[i,j], e[i,j]) for i<N, j<1000\n}"
    check(
        STORAGE_COALESCING, chain(*"xabcdey")[:-1] + more, chain(*"xabaday")[:-1] + more.replace("e[", "a[")
    )


def test_steps_that_make_new_arrays_run_in_bands():
    names = [f"t{k}" for k in range(9)]
    body, last = "", "x"
    for name in [*names, "y"]:
        body += f"{name}[i,j] = {last}[i,j] for i<3000, j<2000\n"
        body += f"{name}[i+1,j] = add({last}[i,j], {last}[i+2,j]) for i<2998, j<2000\n"
        last = name
    temps = "".join(f" temp {name}: f64[3000,2000]\n" for name in names)
    text = f"region() {{\n in x: f64[3000,2000]\n{temps} out y: f64[3000,2000]\n{body}}}"
    log = Log()
    made = CPU.run(parse(text), log, debug=True)
    assert any(isinstance(stmt, TimeTiles) for stmt in made.body), str(log)
    assert len(made.arrays) == 4
    assert CPU.run(made) is made
