"""The laws of library calls and operations that passes apply, and equations that are none.

Each law is a region and what one pass makes of it, beside NumPy's way to write both: an example, since passes
work on any windows of any arrays.  `table` is the table in the documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LAWS", "NO_LAWS", "Law", "NoLaw", "table"]


@dataclass(frozen=True, slots=True)
class Law:
    """Two ways to compute the same, the second of which is better.

    Attributes
    ----------
    name : str
    by : str
        The pass that replaces one by the other.
    keeps : str
        "bits": the results are the same; "sums": sums are added up in another order (or by a library), and
        warnings may come for other elements.
    when : str
        What is asked for, and what else is known.
    before, after : str
        In NumPy: code that makes ``r`` of ``a``, ``b``, ``x``, ``y``.
    region, rewritten : str
        The texts of two regions.
    """

    name: str
    by: str
    keeps: Literal["bits", "sums"]
    when: str
    before: str
    after: str
    region: str
    rewritten: str


@dataclass(frozen=True, slots=True)
class NoLaw:
    """An equation of real numbers that is none of floating-point numbers, and that no pass uses.

    Attributes
    ----------
    left, right : str
        Expressions of NumPy.
    why : str
    example : str
        Code that makes the operands for which they differ.
    """

    left: str
    right: str
    why: str
    example: str


LAWS: tuple[Law, ...] = (
    Law(
        "a sum of products is a product",
        "contract",
        "sums",
        "from 8 rows, columns and terms on; of float and complex numbers",
        "r = (a[:, :, None] * b).sum(axis=1)",
        "r = a @ b",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  out r: f64[9, 10]
          r[i,j] add= multiply(a[i,k], b[k,j]) init 0.0 for i<9, j<10, k<12
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  out r: f64[9, 10]
          call blas.matmul(a, b) -> r
        }""",
    ),
    Law(
        "transposed operands",
        "contract",
        "sums",
        "nothing is copied: libraries read transposed, strided and stacked operands",
        "r = (a[:, :, None] * b[:, None, :]).sum(axis=0)",
        "r = a.T @ b",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 10];  out r: f64[9, 10]
          r[i,j] add= multiply(a[k,i], b[k,j]) init 0.0 for i<9, j<10, k<12
        }""",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 10];  out r: f64[9, 10]
          call blas.matmul(a[j,i for i<9, j<12], b) -> r
        }""",
    ),
    Law(
        "a transposed product",
        "copies",
        "sums",
        "nothing else reads the product in between",
        "r = (a @ b).T.copy()",
        "r = np.empty((10, 9)); np.matmul(a, b, out=r.T)",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  temp t: f64[9, 10];  out r: f64[10, 9]
          call blas.matmul(a, b) -> t
          r[i,j] = t[j,i] for i<10, j<9
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  temp t: f64[9, 10];  out r: f64[10, 9]
          call blas.matmul(a, b) -> r[j,i for i<9, j<10]
        }""",
    ),
    Law(
        "transposes cancel",
        "copies",
        "bits",
        "what is copied does not change before it is read; views are always composed, when they are made",
        "t = a.T.copy(); r = t.T + 1.0",
        "r = a + 1.0",
        """region() {
          in a: f64[9, 12];  temp t: f64[12, 9];  out r: f64[9, 12]
          t[i,j] = a[j,i] for i<12, j<9
          r[i,j] = add(t[j,i], 1.0) for i<9, j<12
        }""",
        """region() {
          in a: f64[9, 12];  temp t: f64[12, 9];  out r: f64[9, 12]
          r[i,j] = add(a[i,j], 1.0) for i<9, j<12
        }""",
    ),
    Law(
        "the sum of a product is an inner product",
        "fuse",
        "sums",
        "one kernel that stores no product",
        "t = x * y; r = t.sum()",
        "r = x @ y",
        """region() {
          in x: f64[9];  in y: f64[9];  temp t: f64[9];  out r: f64[]
          t[i] = multiply(x[i], y[i]) for i<9
          r[] add= t[i] init 0.0 for i<9
        }""",
        """region() {
          in x: f64[9];  in y: f64[9];  temp t: f64[9];  out r: f64[]
          r[] add= multiply(x[i], y[i]) init 0.0 for i<9
        }""",
    ),
    Law(
        "sums of rows are products with a vector",
        "fuse",
        "sums",
        "likewise",
        "t = a * x; r = t.sum(axis=1)",
        "r = a @ x",
        """region() {
          in a: f64[9, 12];  in x: f64[12];  temp t: f64[9, 12];  out r: f64[9]
          t[i,j] = multiply(a[i,j], x[j]) for i<9, j<12
          r[i] add= t[i,j] init 0.0 for i<9, j<12
        }""",
        """region() {
          in a: f64[9, 12];  in x: f64[12];  temp t: f64[9, 12];  out r: f64[9]
          r[i] add= multiply(a[i,j], x[j]) init 0.0 for i<9, j<12
        }""",
    ),
    Law(
        "loops that add up terms are a product",
        "loop_products",
        "sums",
        "no loop writes the operands; at least 8 rows, columns and terms; a fifth of it is used",
        "for k in range(12):\n    for i in range(9):\n        r[i] += a[i, k] * b[k]",
        "r += a @ b",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  inout r: f64[9, 10]
          for k in range(0, 12, 1) {
            for i in range(0, 9, 1) {
              r[i,j] = add(r[i,j], multiply(a[i,k], b[k,j])) for j<10
            }
          }
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  inout r: f64[9, 10];  temp product_1: f64[9, 10]
          product_1[j,k] add= multiply(a[j,l], b[l,k]) init 0.0 for j<9, k<10, l<12
          for i in range(0, 9, 1) {
            r[i,j] = add(r[i,j], product_1[i,j]) for j<10
          }
        }""",
    ),
    Law(
        "triangles of products",
        "loop_products",
        "sums",
        "likewise: one product, and a loop that adds the triangle",
        "for i in range(9):\n"
        "    for j in range(i, 9):\n"
        "        for k in range(12):\n"
        "            r[i, j] += a[k, i] * b[k, j]",
        "r += np.triu(a.T @ b)",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 9];  inout r: f64[9, 9]
          for i in range(0, 9, 1) {
            for j in range(i, 9, 1) {
              for k in range(0, 12, 1) {
                r[i,j] = add(r[i,j], multiply(a[k,i], b[k,j]))
              }
            }
          }
        }""",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 9];  inout r: f64[9, 9];  temp product_1: f64[9, 9]
          product_1[k,l] add= multiply(a[m,k], b[m,l]) init 0.0 for k<9, l<9, m<12
          for i in range(0, 9, 1) {
            for j in range(i, 9, 1) {
              r[i,j] = add(r[i,j], product_1[i,j])
            }
          }
        }""",
    ),
    Law(
        "rows of a product in a loop",
        "loop_products",
        "sums",
        "likewise",
        "for i in range(9):\n    r[i, i:] = a[:, i] @ b[:, i:]",
        "r[np.triu_indices(9)] = (a.T @ b)[np.triu_indices(9)]",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 9];  inout r: f64[9, 9]
          for i in range(0, 9, 1) {
            r[i,j+i] add= multiply(a[k,i], b[k,j+i]) init 0.0 for j<-i+9, k<12
          }
        }""",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 9];  inout r: f64[9, 9];  temp product_1: f64[9, 9]
          product_1[j,k] add= multiply(a[l,j], b[l,k]) init 0.0 for j<9, k<9, l<12
          for i in range(0, 9, 1) {
            r[i,j+i] = add(0.0, product_1[i,j+i]) for j<-i+9
          }
        }""",
    ),
    Law(
        "a part of a product",
        "product_parts",
        "sums",
        "all that reads the product is known",
        "r = (a @ b)[:, 1:8:2]",
        "r = (a @ b[:, 1:8])[:, ::2]",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  temp t: f64[9, 10];  out r: f64[9, 4]
          call blas.matmul(a, b) -> t
          r[i,j] = t[i,2*j+1] for i<9, j<4
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  temp t: f64[9, 10];  out r: f64[9, 4]
          call blas.matmul(a, b[i,j+1 for i<12, j<7]) -> t[i,j+1 for i<9, j<7]
          r[i,j] = t[i,2*j+1] for i<9, j<4
        }""",
    ),
    Law(
        "the diagonal of a product",
        "product_parts",
        "sums",
        "nothing but the diagonal is read",
        "r = (a @ b).trace()",
        "r = sum(a[i] @ b[:, i] for i in range(9))",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  temp t: f64[9, 10];  out r: f64[]
          call blas.matmul(a, b) -> t
          r[] add= t[i,i] init 0.0 for i<9
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  temp t: f64[9, 10];  out r: f64[]
          t[i,i] add= multiply(a[i,j], b[j,i]) init 0.0 for i<9, j<12
          r[] add= t[i,i] init 0.0 for i<9
        }""",
    ),
    Law(
        "independent iterations are an axis",
        "loop_distribution",
        "bits",
        "no iteration reads what another one writes",
        "for i in range(9):\n    r[i] = a[i] * x[i]",
        "r[:] = a * x[:, None]",
        """region() {
          in a: f64[9, 12];  in x: f64[9];  inout r: f64[9, 12]
          for i in range(0, 9, 1) {
            r[i,j] = multiply(a[i,j], x[i]) for j<12
          }
        }""",
        """region() {
          in a: f64[9, 12];  in x: f64[9];  inout r: f64[9, 12]
          r[i,j] = multiply(a[i,j], x[i]) for i<9, j<12
        }""",
    ),
    Law(
        "products of rows in a loop",
        "loop_distribution",
        "sums",
        "likewise; then it is a sum of products, as above",
        "for i in range(9):\n    r[i] = a[i] @ b",
        "r[:] = a @ b",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  inout r: f64[9, 10]
          for i in range(0, 9, 1) {
            r[i,j] add= multiply(a[i,k], b[k,j]) init 0.0 for j<10, k<12
          }
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[12, 10];  inout r: f64[9, 10]
          r[i,j] add= multiply(a[i,k], b[k,j]) init 0.0 for i<9, j<10, k<12
        }""",
    ),
    Law(
        "twice is once, or nothing",
        "simplify",
        "bits",
        "`-`, `~`, conj; abs, sign, floor, ceil, trunc, rint; max, min, `&`, `|` of equal operands",
        "r = np.abs(np.abs(-(-a)))",
        "r = np.abs(a)",
        """region() {
          in a: f64[9];  out r: f64[9]
          r[i] = absolute(absolute(negative(negative(a[i])))) for i<9
        }""",
        """region() {
          in a: f64[9];  out r: f64[9]
          r[i] = absolute(a[i]) for i<9
        }""",
    ),
    Law(
        "neutral elements",
        "simplify",
        "bits",
        "not `a + 0.0`, which makes 0.0 of -0.0; of integers also `+`, `|`, `^`, shifts",
        "r = np.maximum(a * 1.0, (a - 0.0) / 1.0)",
        "r = np.maximum(a, a)",
        """region() {
          in a: f64[9];  out r: f64[9]
          r[i] = maximum(multiply(a[i], 1.0), divide(subtract(a[i], 0.0), 1.0)) for i<9
        }""",
        """region() {
          in a: f64[9];  out r: f64[9]
          r[i] = a[i] for i<9
        }""",
    ),
    Law(
        "a cast and back",
        "simplify",
        "bits",
        "the type in between has all values",
        "r = x.astype(np.float64).astype(np.float32)",
        "r = x.copy()",
        """region() {
          in x: f32[9];  out r: f32[9]
          r[i] = cast:f32(cast:f64(x[i])) for i<9
        }""",
        """region() {
          in x: f32[9];  out r: f32[9]
          r[i] = x[i] for i<9
        }""",
    ),
)


NO_LAWS = (
    NoLaw(
        "np.fft.ifft(np.fft.fft(x))", "x + 0j",
        "both transforms round, and an infinity or NaN is in all elements of the left side",
        "x = np.array([1.0, np.inf, 2.0, 3.0])",
    ),
    NoLaw(
        "(a @ b) @ x", "a @ (b @ x)", "the order of products decides what is rounded, and what overflows",
        "a = b = np.full((2, 2), 1e200); x = np.full(2, 1e-200)",
    ),
    NoLaw(
        "(a @ b).sum()", "a.sum(axis=0) @ b.sum(axis=1)", "sums that cancel first lose what is small",
        "a = np.array([[1e20, 1.0], [-1e20, 1.0]]); b = np.ones((2, 2))",
    ),
    NoLaw(
        "a @ np.diag(x)", "a * x", "the product has terms 0 * inf, which are NaN",
        "a = np.array([[1.0, np.inf], [2.0, 3.0]]); x = np.ones(2)",
    ),
    NoLaw("x * y + x * z", "x * (y + z)", "both sides round", "x, y, z = np.array([0.1]), 0.1, 0.3"),
    NoLaw("(x + y) + z", "x + (y + z)", "both sides round", "x, y, z = np.array([0.1]), 0.2, 0.3"),
    NoLaw("x / y", "x * (1.0 / y)", "both sides round", "x, y = np.array([5.0]), 49.0"),
    NoLaw("np.sqrt(x) ** 2", "x", "the root is rounded", "x = np.array([2.0])"),
    NoLaw("x + 0.0", "x", "-0.0 becomes 0.0", "x = np.array([-0.0])"),
    NoLaw("x - x", "np.zeros_like(x)", "infinities and NaNs give NaN", "x = np.array([np.inf])"),
    NoLaw("x * 0.0", "np.zeros_like(x)", "infinities and NaNs give NaN", "x = np.array([np.nan, -1.0])"),
)  # fmt: skip


def table() -> str:
    """Return the laws as Markdown."""
    out = ["| law | from | to | keeps | pass | when |", "|---|---|---|---|---|---|"]
    for law in LAWS:
        before, after = _code(law.before), _code(law.after)
        out.append(f"| {law.name} | {before} | {after} | {law.keeps} | `{law.by}` | {_cell(law.when)} |")
    out += ["", "| is not | | since |", "|---|---|---|"]
    out += [f"| {_code(no.left)} | {_code(no.right)} | {no.why} |" for no in NO_LAWS]
    return "\n".join(out)


def _code(text: str) -> str:
    """Code in a cell of a table."""
    lines = [line.replace("    ", "\u00a0\u00a0") for line in text.splitlines()]
    return "<br>".join(f"`{_cell(line)}`" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
