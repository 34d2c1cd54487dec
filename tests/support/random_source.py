"""Random statements of Python over a few ints: loops, conditions, jumps, exceptions."""

from typing import Any

from hypothesis import strategies as st

NAMES = "abcde"
names = st.sampled_from(NAMES)
atoms = st.one_of(names, st.integers(0, 3).map(str))
exprs = st.one_of(  # no products: numbers that are squared again and again take all time there is
    atoms,
    st.tuples(atoms, st.sampled_from(["+", "-", "%", "//"]), atoms).map(" ".join),
    st.tuples(names, atoms, names).map(lambda p: f"({p[0]} := {p[1]}) + {p[2]}"),
    st.tuples(atoms, names, atoms).map(
        lambda p: f"sum(q - {p[0]} for q in range({p[1]} % 4) if q != {p[2]})"
    ),
)
signs = st.sampled_from(["<", ">", "=="])
comparisons = st.tuples(atoms, signs, atoms).map(" ".join)
bindings = st.tuples(names, exprs, signs, atoms).map(lambda p: f"({p[0]} := {p[1]}) {p[2]} {p[3]}")
tests = st.one_of(
    comparisons,
    comparisons,
    comparisons,
    bindings,
    st.tuples(comparisons, st.sampled_from(["and", "or"]), bindings).map(" ".join),
    st.tuples(names, atoms).map(lambda p: f"any(q > {p[1]} for q in range({p[0]} % 4))"),
)


def block(inner: Any) -> Any:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    )


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


simple = st.one_of(
    st.tuples(names, exprs).map(lambda p: [f"{p[0]} = {p[1]}"]),
    st.tuples(names, exprs).map(lambda p: [f"{p[0]} += {p[1]}"]),
    st.tuples(names, names, exprs).map(lambda p: [f"{p[0]}, {p[1]} = {p[2]}, {p[0]}"]),
    names.map(lambda n: [f"del {n}"]),
)
jumps = st.sampled_from([["break"], ["continue"], ["return a"]])


def counted(test: str, body: list[str]) -> list[str]:
    """A loop with a counter of its own, so that it ends whatever loops there are inside."""
    w = f"w{sum('while' in line for line in body)}"
    return [f"{w} = 0", f"while {w} < 3 and ({test}):", *indent([f"{w} = {w} + 1", *body])]


def compound(inner: Any) -> Any:
    body = block(inner)
    loop_body = st.tuples(body, st.one_of(st.just([]), st.just([]), jumps), tests).map(
        lambda p: p[0] if not p[1] else [*p[0], f"if {p[2]}:", *indent(p[1])]
    )
    return st.one_of(
        st.tuples(tests, body, body).map(lambda p: [f"if {p[0]}:", *indent(p[1]), "else:", *indent(p[2])]),
        st.tuples(tests, body).map(lambda p: [f"if {p[0]}:", *indent(p[1])]),
        st.tuples(names, atoms, loop_body).map(
            lambda p: [f"for {p[0]} in range({p[1]} % 5):", *indent(p[2])]
        ),
        st.tuples(tests, loop_body).map(lambda p: counted(*p)),
        st.tuples(names, atoms, loop_body, body).map(
            lambda p: [f"for {p[0]} in range({p[1]} % 5):", *indent(p[2]), "else:", *indent(p[3])]
        ),
        st.tuples(body, names, body).map(
            lambda p: ["try:", *indent(p[0]), "except ZeroDivisionError as x:", *indent(p[2])]
        ),
        st.tuples(body, body).map(lambda p: ["try:", *indent(p[0]), "finally:", *indent(p[1])]),
        st.tuples(body).map(lambda p: ["with suppress(ZeroDivisionError):", *indent(p[0])]),
        st.tuples(tests, body, exprs).map(lambda p: [f"if {p[0]}:", *indent([*p[1], f"return {p[2]}, a"])]),
    )


programs = block(st.recursive(simple, compound, max_leaves=12))
