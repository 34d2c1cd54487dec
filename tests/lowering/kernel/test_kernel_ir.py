"""The kernel IR: canonical sums, text and checks."""

from dataclasses import replace

import numpy as np
import pytest

from dcarray.lowering.kernel import nodes as K
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check

F8 = np.dtype("d")


def axpy():
    i = K.affine(0, K.Term(1, None, "i0"))
    value = K.Op("add", (K.Elem("p0", i, F8), K.Local("v0", F8)), F8)
    phase = K.Phase(
        "i0",
        K.affine(0, K.Term(1, "n0")),
        "vector",
        (K.Store("p0", i, value),),
        (K.Let("v0", K.Elem("p1", K.affine(), F8)),),
    )
    buffers = (K.Buffer("p0", F8, "rw"), K.Buffer("p1", F8, "r", noalias=False))
    return K.Kernel(buffers, ("n0",), (phase,))


def test_affine_sums_are_canonical():
    i, j = K.Term(1, None, "i"), K.Term(2, "n0", "j")
    assert K.affine(1, i, j) == K.affine(0, j, K.affine(1, i))
    assert K.affine(0, i, K.Term(-1, None, "i")) == K.affine()
    assert K.affine(1, K.Term(4)) == K.Affine(5)


def test_text():
    assert kernel_text(axpy()) == (
        "kernel(p0: float64 rw, p1: float64 r alias, n0) {\n"
        "  parallel vector i0 < n0 {\n"
        "    let v0: float64 = p1[0]\n"
        "    --\n"
        "    p0[i0] = add.float64(p0[i0], v0)\n"
        "  }\n"
        "}"
    )


def test_text_of_every_statement():
    v, zero = K.Local("a0", F8), K.Lit(bytes(8), F8)
    at, n = K.affine(3, K.Term(2, "n1", "i1"), K.Term(-1, "n0")), K.affine(0, K.Term(1, "n0"))
    gather = K.Elem("p0", K.affine(), F8, ((K.Index(at), K.affine(1)),))
    body = (
        K.Declare("a0", zero, True),
        K.For("i1", K.affine(), (n, K.affine(7)), 2, "vector", (K.Update("a0", "add", gather),), 4),
        K.If(K.Op("isnan", (v,), np.dtype(bool)), (K.Assign("a0", zero),), (K.Store("p0", n, v),)),
    )
    kernel = K.Kernel((K.Buffer("p0", F8, "rw"),), ("n0", "n1"), (K.Phase("i0", n, "serial", body),))
    check(kernel)
    assert kernel_text(kernel).splitlines()[3:-2] == [
        "    var a0: float64 reassoc = float64:0000000000000000",
        "    vector i1 = 0 .. min(n0, 7) step 2 unroll 4 {",
        "      a0 add= p0[0 + (-1*n0 + 2*n1*i1 + 3)*(1)]", "    }", "    if isnan.bool(a0) {",
        "      a0 = float64:0000000000000000", "    } else {", "      p0[n0] = a0", "    }",
    ]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), [
    ({"ints": ()}, "no integer argument n0"),
    ({"buffers": (K.Buffer("p0", F8, "w"), K.Buffer("p1", F8, "r"))}, "p0 is not declared for 'r'"),
    ({"buffers": (K.Buffer("p0", F8, "rw"), K.Buffer("p1", np.dtype("f"), "r"))}, "p1 does not hold"),
    ({"phases": (replace(axpy().phases[0], pre=()),)}, "no local v0"),
    ({"phases": (replace(axpy().phases[0], var="i9"),)}, "no loop variable i0"),
])  # fmt: skip
def test_check_names_what_is_wrong(change, words):
    check(axpy())
    with pytest.raises(ValueError, match=words):
        check(replace(axpy(), **change))
