/* Call a product that was compiled from Python: see gemm.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gemm.h"

int main(void) {
  const int64_t n = 300, m = 250, k = 200;
  double *a = malloc(sizeof *a * n * k), *b = malloc(sizeof *b * k * m), *c = malloc(sizeof *c * n * m);
  if (!a || !b || !c) return 1;
  for (int64_t i = 0; i < n * k; i++) a[i] = (double)(i % 17) / 17;
  for (int64_t i = 0; i < k * m; i++) b[i] = (double)(i % 23) / 23;
  for (int64_t i = 0; i < n * m; i++) c[i] = 1.0;

  const int32_t status = gemm(n, m, k, 1.5, 0.5, c, a, b);
  if (status != GEMM_OK) {
    printf("status %d\n", (int)status);
    return 1;
  }
  double worst = 0.0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < m; j++) {
      double sum = 0.0;
      for (int64_t p = 0; p < k; p++) sum += 1.5 * a[i * k + p] * b[p * m + j];
      worst = fmax(worst, fabs(sum + 0.5 - c[i * m + j]));
    }
  printf("largest difference %.1e\n", worst);
  printf("c overlaps a: status %d, as GEMM_OVERLAP is %d\n", (int)gemm(n, m, k, 1.5, 0.5, a, a, b), GEMM_OVERLAP);
  free(a);
  free(b);
  free(c);
  return worst > 1e-9;
}
