"""Programs: what they mean, what orders their nodes, and what the verifier finds."""

import random
from dataclasses import replace

import ir_regions
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_regions import assert_agree
from program_machine import ProgramMachine

from dcarray.ir import interp
from dcarray.ir.nodes import Compute
from dcarray.ir.parse import parse
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.libraries.dispatch import is_copy
from dcarray.lowering.program import nodes
from dcarray.lowering.program.text import dump
from dcarray.lowering.program.verify import InvalidProgram, verify
from dcarray.lowering.targets import get


def meaning(case):
    with np.errstate(all="ignore"):
        return interp.run(case.region, case.memory(), case.values)


@settings(max_examples=24, deadline=None, derandomize=True)
@given(ir_regions.cases(), st.integers(0, 2**32 - 1), st.booleans())
def test_any_order_that_the_edges_allow_gives_what_the_region_means(case, seed, passes):
    region = CPU.run(case.region) if passes else case.region
    program = compile_region(region).program
    verify(program)
    want = meaning(case)
    for rng in (None, random.Random(seed), random.Random(seed + 1)):
        with np.errstate(all="ignore"):
            got = ProgramMachine(program, case.memory(), case.values, rng).run()
        assert_agree(got, want, zero_signs=case.zero_signs)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(ir_regions.cases(symbolic=True, aliases=False), st.integers(0, 2**32 - 1))
def test_programs_with_symbols(case, seed):
    program = compile_region(case.region).program
    verify(program)
    with np.errstate(all="ignore"):
        got = ProgramMachine(program, case.memory(), case.values, random.Random(seed)).run()
    assert_agree(got, meaning(case), zero_signs=case.zero_signs)


SOURCE = """region(N: int>=3) {
  in A: f64[N, N];  temp t: f64[N, N];  temp u: f64[N];  inout s: f64[N];  out r: f64[N]
  call blas.matmul(A, A) -> t
  u[i] add= t[i,j] init 0.0 for i<N, j<N
  r[i] = multiply(u[i], s[i]) for i<N
  while less(s[0], u[0]) {
    s[i] = add(s[i], 1.0) for i<N
    call blas.matmul(A, s) -> r
  }
}"""


def program():
    return compile_region(parse(SOURCE)).program


def test_the_text_shows_memory_work_and_edges():
    assert (
        dump(program())
        == """program(N: int>=3) {
  in A: f64[N, N];  temp t: f64[N, N];  temp u: f64[N];  inout s: f64[N];  out r: f64[N]
  temp _condition5: bool[]
  0  alloc t: f64[N, N]
  1  call blas.matmul(A, A) -> t  # numpy, after 0
  2  alloc u: f64[N]
  3  launch u[i] add= t[i,j] init 0.0 for i<N, j<N  # after 0, 1, 2
  4  free t  # after 0, 1, 3
  5  launch r[i] = multiply(u[i], s[i]) for i<N  # after 2, 3
  6  alloc _condition5: bool[]
  7  repeat {  # after 2, 3, 5, 6
       0  launch _condition5[] = less(s[0], u[0])
     } while _condition5 {
       0  launch s[i] = add(s[i], 1.0) for i<N
       1  call blas.matmul(A, s) -> r  # numpy, after 0
     }
  8  free _condition5  # after 6, 7
  9  free u  # after 2, 3, 5, 7
}
"""
    )


def test_a_step_says_which_arrays_it_is_given():
    (call,) = (node for node in program().body if isinstance(node, nodes.LibraryCall))
    assert call.names == ("t", "A", "A")
    assert [window.array for window in nodes.reads(call)] == ["A"]


def without(kind, made, name):
    kept = [n for n in made.body if not (isinstance(n, kind) and n.array.name == name)]
    return replace(made, body=tuple(kept))


BROKEN = {
    "uses t, which is not allocated": lambda p: without(nodes.Alloc, p, "t"),
    "is never freed": lambda p: without(nodes.Free, p, "u"),
    "allocates t, which is there already": lambda p: replace(p, body=(p.body[0], *p.body)),
    "allocates A, which is there already": lambda p: replace(
        p, body=(nodes.Alloc(p.region.arrays[0], 0), *p.body)
    ),
    "frees A, which is not allocated": lambda p: replace(
        p, body=(*p.body, nodes.Free(p.region.arrays[0], 0))
    ),
    "is decided by": lambda p: replace(
        p, body=tuple(replace(n, head=()) if isinstance(n, nodes.While) else n for n in p.body)
    ),
    "uses u, which is not allocated": lambda p: replace(
        p,
        body=(
            *(n for n in p.body if not (isinstance(n, nodes.Launch) and n.position == 2)),
            *(n for n in p.body if isinstance(n, nodes.Launch) and n.position == 2),
        ),
    ),
    "uses s, which is in none of its windows": lambda p: replace(
        p,
        body=tuple(
            replace(n, stmt=replace(n.stmt, body=n.stmt.body.args[0]))
            if isinstance(n, nodes.Launch) and n.position == 2
            else n
            for n in p.body
        ),
    ),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_the_verifier_finds_what_is_wrong(reason):
    verify(program())
    with pytest.raises(InvalidProgram, match=reason):
        verify(BROKEN[reason](program()))


@settings(max_examples=10, deadline=None, derandomize=True)
@given(ir_regions.cases(), st.integers(0, 2**32 - 1))
def test_a_target_may_have_copies_as_nodes(case, seed):
    made = compile_region(case.region, replace(get("cpu"), copies=True, shares_arrays=False)).program
    verify(made)
    assert not any(
        isinstance(n, nodes.Launch) and isinstance(n.stmt, Compute) and is_copy(n.stmt) for n in made.steps()
    )
    with np.errstate(all="ignore"):
        got = ProgramMachine(made, case.memory(), case.values, random.Random(seed)).run()
    assert_agree(got, meaning(case), zero_signs=case.zero_signs)


def test_a_copy_is_run_by_numpy():
    plan = compile_region(
        parse("""region() {
          in a: f64[6];  out o: f64[3]
          o[i] = a[5 - 2*i] for i<3
        }"""),
        replace(get("cpu"), copies=True),
    )
    assert plan.stats == {"kernels": 0, "calls": 1, "interpreted": 0}
    assert "copy o[i]" in dump(plan.program)
    a, o = np.arange(6.0), np.empty(3)
    plan.run([a, o], [a.ctypes.data, o.ctypes.data])
    assert o.tolist() == [5, 3, 1]
