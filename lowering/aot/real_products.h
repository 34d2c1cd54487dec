/* c = a b, by blocks that stay in the caches.  Steps of rows (r) and columns (c) are in elements.
   REAL is the type of elements, NAME(x) gives the functions for it their names. */
#define MR (DC_VECTOR == 64 ? 8 : DC_VECTOR == 32 ? 6 : 4)
#define NR (2 * DC_VECTOR / (int64_t)sizeof(REAL))
typedef REAL NAME(vector) __attribute__((vector_size(DC_VECTOR), aligned(sizeof(REAL)), may_alias));

/* A tile of MR rows and NR columns, from packed strips. */
DC_FUSED static void NAME(tile)(int64_t k, const REAL *a, const REAL *b, REAL *t) {
  NAME(vector) s[MR][2];
  for (int i = 0; i < MR; i++) s[i][0] = s[i][1] = (NAME(vector)){0};
  for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
    const NAME(vector) x = *(const NAME(vector) *)b, y = *(const NAME(vector) *)(b + NR / 2);
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
      s[i][0] += a[i] * x;
      s[i][1] += a[i] * y;
    }
  }
  for (int i = 0; i < MR; i++) {
    *(NAME(vector) *)(t + i * NR) = s[i][0];
    *(NAME(vector) *)(t + i * NR + NR / 2) = s[i][1];
  }
}

/* A matrix and a vector. */
DC_FUSED static void NAME(vectors)(int64_t m, int64_t k, REAL *c, int64_t cr, const REAL *a, int64_t ar,
                                   int64_t ac, const REAL *b, int64_t br) {
  enum { W = DC_VECTOR / sizeof(REAL) };
  if (ac != 1 || br != 1) { /* by columns */
    for (int64_t i = 0; i < m; i++) c[i * cr] = 0;
    for (int64_t p = 0; p < k; p++) {
      const REAL x = b[p * br];
      if (ar == 1 && cr == 1)
        for (int64_t i = 0; i < m; i++) c[i] += a[p * ac + i] * x;
      else
        for (int64_t i = 0; i < m; i++) c[i * cr] += a[i * ar + p * ac] * x;
    }
    return;
  }
  for (int64_t i = 0; i < m; i++) {
    const REAL *row = a + i * ar;
    NAME(vector) s[4] = {{0}};
    int64_t p = 0;
    for (; p + 4 * W <= k; p += 4 * W)
      for (int q = 0; q < 4; q++)
        s[q] += *(const NAME(vector) *)(row + p + q * W) * *(const NAME(vector) *)(b + p + q * W);
    REAL sum = 0;
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    for (int q = 0; q < W; q++) sum += s[0][q];
    for (; p < k; p++) sum += row[p] * b[p];
    c[i * cr] = sum;
  }
}

/* Two matrices. */
DC_FUSED static void NAME(matrices)(int64_t m, int64_t n, int64_t k, REAL *c, int64_t cr, int64_t cc,
                                    const REAL *a, int64_t ar, int64_t ac, const REAL *b, int64_t br,
                                    int64_t bc) {
  enum { KC = 256, MC = 16 * MR, NC = 512 };
  REAL *const room = m > 3 && n > 3 ? malloc(sizeof(REAL) * (KC * (MC + NC + NR))) : 0;
  REAL t[MR * NR];
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * cr + j * cc] = 0;
  if (!room) {
    for (int64_t i = 0; i < m; i++)
      for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++) c[i * cr + j * cc] += a[i * ar + p * ac] * b[p * br + j * bc];
    return;
  }
  REAL *const left = room, *const right = room + KC * MC;
  for (int64_t p0 = 0; p0 < k; p0 += KC) {
    const int64_t kc = k - p0 < KC ? k - p0 : KC;
    for (int64_t j0 = 0; j0 < n; j0 += NC) {
      const int64_t nc = n - j0 < NC ? n - j0 : NC;
      for (int64_t j = 0; j < nc; j += NR)
        for (int64_t p = 0; p < kc; p++)
          for (int64_t q = 0; q < NR; q++)
            right[j * kc + p * NR + q] = j + q < nc ? b[(p0 + p) * br + (j0 + j + q) * bc] : 0;
      for (int64_t i0 = 0; i0 < m; i0 += MC) {
        const int64_t mc = m - i0 < MC ? m - i0 : MC;
        for (int64_t i = 0; i < mc; i += MR)
          for (int64_t p = 0; p < kc; p++)
            for (int64_t q = 0; q < MR; q++)
              left[i * kc + p * MR + q] = i + q < mc ? a[(i0 + i + q) * ar + (p0 + p) * ac] : 0;
        for (int64_t j = 0; j < nc; j += NR)
          for (int64_t i = 0; i < mc; i += MR) {
            const int64_t rows = mc - i < MR ? mc - i : MR, columns = nc - j < NR ? nc - j : NR;
            REAL *const to = c + (i0 + i) * cr + (j0 + j) * cc;
            NAME(tile)(kc, left + i * kc, right + j * kc, t);
            for (int64_t q = 0; q < rows; q++)
              for (int64_t r = 0; r < columns; r++) to[q * cr + r * cc] += t[q * NR + r];
          }
      }
    }
  }
  free(room);
}

static void NAME(matmul)(int64_t c, int64_t a, int64_t b, int64_t m, int64_t n, int64_t k, int64_t cr,
                         int64_t cc, int64_t ar, int64_t ac, int64_t br, int64_t bc) {
  REAL *const z = (REAL *)c;
  const REAL *const x = (const REAL *)a, *const y = (const REAL *)b;
  if (m <= 0 || n <= 0) return;
  if (n == 1)
    NAME(vectors)(m, k, z, cr, x, ar, ac, y, br);
  else if (m == 1)
    NAME(vectors)(n, k, z, cc, y, bc, br, x, ac);
  else if (!NAME(by_blas)(z, x, y, m, n, k, cr, cc, ar, ac, br, bc))
    NAME(matrices)(m, n, k, z, cr, cc, x, ar, ac, y, br, bc);
}
#undef MR
#undef NR
