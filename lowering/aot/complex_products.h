/* c = a b, for complex numbers with parts of the type REAL. */
typedef struct {
  REAL re, im;
} NAME(number);

static void NAME(matmul)(int64_t c, int64_t a, int64_t b, int64_t m, int64_t n, int64_t k, int64_t cr,
                         int64_t cc, int64_t ar, int64_t ac, int64_t br, int64_t bc) {
  NAME(number) *const z = (NAME(number) *)c;
  const NAME(number) *const x = (const NAME(number) *)a, *const y = (const NAME(number) *)b;
  if (m <= 0 || n <= 0 || NAME(by_blas)(z, x, y, m, n, k, cr, cc, ar, ac, br, bc)) return;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) z[i * cr + j * cc] = (NAME(number)){0, 0};
    for (int64_t p = 0; p < k; p++) {
      const NAME(number) u = x[i * ar + p * ac];
      for (int64_t j = 0; j < n; j++) {
        const NAME(number) v = y[p * br + j * bc];
        z[i * cr + j * cc].re += u.re * v.re - u.im * v.im;
        z[i * cr + j * cc].im += u.re * v.im + u.im * v.re;
      }
    }
  }
}
