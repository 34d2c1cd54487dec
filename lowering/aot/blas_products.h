/* c = a b by CBLAS, where it takes the layouts; else 0.  SCALAR, POINTER: how it takes elements. */
void CBLAS(int, int, int, int, int, int, SCALAR, POINTER, int, POINTER, int, SCALAR, RESULT, int);
static int NAME(by_blas)(RESULT c, POINTER a, POINTER b, int64_t m, int64_t n, int64_t k, int64_t cr, int64_t cc,
                         int64_t ar, int64_t ac, int64_t br, int64_t bc) {
  /* CblasRowMajor 101, CblasNoTrans 111, CblasTrans 112 */
  const int64_t ta = ac == 1 && ar >= k && ar > 0 ? 111 : ar == 1 && ac >= m && ac > 0 ? 112 : 0;
  const int64_t tb = bc == 1 && br >= n && br > 0 ? 111 : br == 1 && bc >= k && bc > 0 ? 112 : 0;
  const int64_t la = ta == 111 ? ar : ac, lb = tb == 111 ? br : bc;
  const int64_t numbers[] = {m, n, k, la, lb, cr};
  if (!ta || !tb || cc != 1 || cr < n || k <= 0) return 0;
  for (int i = 0; i < 6; i++)
    if (numbers[i] > INT32_MAX) return 0;
  const REAL one[] = {1, 0}, zero[] = {0, 0};
  CBLAS(101, (int)ta, (int)tb, (int)m, (int)n, (int)k, BY one, a, (int)la, b, (int)lb, BY zero, c, (int)cr);
  return 1;
}
