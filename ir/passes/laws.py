"""The table of the algebraic rewrites that passes apply, and of equations that they must not apply.

Each law has an example region, the region that one pass makes of it, and NumPy code for both; the passes work
on any windows of any arrays.  `table` makes the table in the documents.
"""

from __future__ import annotations

from .law import Law, NoLaw
from .product_laws import PRODUCT_LAWS

__all__ = ["LAWS", "NO_LAWS", "Law", "NoLaw", "table"]


LAWS: tuple[Law, ...] = (
    *PRODUCT_LAWS,
    Law(
        "what does not change is computed once",
        "loop_invariants",
        "bits",
        "no iteration writes what it reads; it takes as long as a division and an addition for each element",
        "for i in range(5):\n    r[:] = r + np.exp(x)",
        "t = np.exp(x)\nfor i in range(5):\n    r[:] = r + t",
        """region() {
          in x: f64[9];  inout r: f64[9]
          for i in range(0, 5, 1) {
            r[i] = add(r[i], exp(x[i])) for i<9
          }
        }""",
        """region() {
          in x: f64[9];  inout r: f64[9];  temp kept_0: f64[9]
          kept_0[i] = exp(x[i]) for i<9
          for i in range(0, 5, 1) {
            r[i] = add(r[i], kept_0[i]) for i<9
          }
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
        "x * a @ b", "x * (a @ b)", "the order of products decides what is rounded, and what overflows",
        "a = b = np.full((2, 2), 1e200); x = 1e-200",
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
    """Return Python code as the text of a Markdown table's cell."""
    lines = [line.replace("    ", "\u00a0\u00a0") for line in text.splitlines()]
    return "<br>".join(f"`{_cell(line)}`" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
