"""The laws (see `law`) of matrix products and transposes, which passes apply."""

from __future__ import annotations

from .law import Law

__all__ = ["PRODUCT_LAWS"]

PRODUCT_LAWS: tuple[Law, ...] = (
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
        "sums that share loops are products",
        "loop_products",
        "sums",
        "likewise, and what else is in the loops neither touches the sums nor writes what they are of",
        "for i in range(9):\n"
        "    for j in range(12):\n"
        "        r[i] += a[i, j] * x[j]\n"
        "        s[j] += y[i] * a[i, j]",
        "r += a @ x; s += y @ a",
        """region() {
          in a: f64[9, 12];  in x: f64[12];  in y: f64[9];  inout r: f64[9];  inout s: f64[12]
          for i in range(0, 9, 1) {
            for j in range(0, 12, 1) {
              r[i] = add(r[i], multiply(a[i,j], x[j]))
              s[j] = add(s[j], multiply(y[i], a[i,j]))
            }
          }
        }""",
        """region() {
          in a: f64[9, 12];  in x: f64[12];  in y: f64[9];  inout r: f64[9];  inout s: f64[12]
          temp product_1: f64[12];  temp product_2: f64[9]
          product_1[j] add= multiply(y[i], a[i,j]) init 0.0 for i<9, j<12
          product_2[i] add= multiply(a[i,j], x[j]) init 0.0 for i<9, j<12
          for i in range(0, 9, 1) {
            r[i] = add(r[i], product_2[i])
          }
          for j in range(0, 12, 1) {
            s[j] = add(s[j], product_1[j])
          }
        }""",
    ),
    Law(
        "products with computed vectors",
        "loop_products",
        "sums",
        "likewise; what is computed is the same for all results",
        "for i in range(9):\n    for j in range(12):\n        r[i] += a[i, j] * (x[j] + 1.0)",
        "t = x + 1.0; r += a @ t",
        """region() {
          in a: f64[9, 12];  in x: f64[12];  inout r: f64[9]
          for i in range(0, 9, 1) {
            for j in range(0, 12, 1) {
              r[i] = add(r[i], multiply(a[i,j], add(x[j], 1.0)))
            }
          }
        }""",
        """region() {
          in a: f64[9, 12];  in x: f64[12];  inout r: f64[9];  temp factor_1: f64[12]
          temp product_1: f64[9]
          factor_1[j] = add(x[j], 1.0) for j<12
          product_1[i] add= multiply(a[i,j], factor_1[j]) init 0.0 for i<9, j<12
          for i in range(0, 9, 1) {
            r[i] = add(r[i], product_1[i])
          }
        }""",
    ),
    Law(
        "products with computed matrices",
        "loop_products",
        "sums",
        "likewise; a factor differs among results along rows or columns, not along both; what all terms "
        "have in common is done once",
        "for i in range(9):\n    for j in range(10):\n        for k in range(12):\n"
        "            r[i, j] += 2.0 * (a[k, i] - p[i]) * w[k] * b[k, j]",
        "r += 2.0 * (((a - p) * w[:, None]).T @ b)",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 10];  in p: f64[9];  in w: f64[12];  inout r: f64[9, 10]
          for i in range(0, 9, 1) {
            for j in range(0, 10, 1) {
              for k in range(0, 12, 1) {
                r[i,j] = add(r[i,j], multiply(multiply(multiply(2.0, subtract(a[k,i], p[i])), w[k]), b[k,j]))
              }
            }
          }
        }""",
        """region() {
          in a: f64[12, 9];  in b: f64[12, 10];  in p: f64[9];  in w: f64[12];  inout r: f64[9, 10]
          temp factor_1: f64[12, 9];  temp product_1: f64[9, 10]
          factor_1[k,l] = multiply(subtract(a[k,l], p[l]), w[k]) for k<12, l<9
          product_1[k,l] add= multiply(factor_1[m,k], b[m,l]) init 0.0 for k<9, l<10, m<12
          for i in range(0, 9, 1) {
            for j in range(0, 10, 1) {
              r[i,j] = add(r[i,j], multiply(2.0, product_1[i,j]))
            }
          }
        }""",
    ),
    Law(
        "sums of products are several products",
        "loop_products",
        "sums",
        "likewise, for each of them; a product and its transpose are computed once",
        "for i in range(9):\n    for j in range(i, 9):\n        for k in range(12):\n"
        "            r[i, j] += a[i, k] * b[j, k] - b[i, k] * a[j, k]",
        "t = a @ b.T; r += np.triu(t - t.T)",
        """region() {
          in a: f64[9, 12];  in b: f64[9, 12];  inout r: f64[9, 9]
          for i in range(0, 9, 1) {
            for j in range(i, 9, 1) {
              for k in range(0, 12, 1) {
                r[i,j] = add(r[i,j], subtract(multiply(a[i,k], b[j,k]), multiply(b[i,k], a[j,k])))
              }
            }
          }
        }""",
        """region() {
          in a: f64[9, 12];  in b: f64[9, 12];  inout r: f64[9, 9];  temp product_1: f64[9, 9]
          product_1[k,l] add= multiply(a[k,m], b[l,m]) init 0.0 for k<9, l<9, m<12
          for i in range(0, 9, 1) {
            for j in range(i, 9, 1) {
              r[i,j] = subtract(add(r[i,j], product_1[i,j]), product_1[j,i])
            }
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
)
