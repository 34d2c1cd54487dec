"""C texts of complex functions such as ``exp`` and ``sqrt``, written with real functions.

Logarithms and roots are within 4 units in the last place of each part, as real functions are; parts that are
products of two functions are within 8.  Infinities and NaN give what the C library that NumPy calls gives.
In the texts ``R`` is the type of the parts, and ``S`` stands for the suffix of libm's functions.
"""

from __future__ import annotations

__all__ = ["COMPLEX"]

# Where exp(x) would overflow, a large factor comes last: only a result that is too large does.
_SCALE = """
  R most = sizeof(R) == 4 ? 88 : 709, shift = sizeof(R) == 4 ? 64 : 500;
"""

_EXP = f"""{_SCALE}
  if (a.im == 0) return C{{expS(a.re), a.im}};
  if (!isfinite(a.im)) {{
    R none = a.im - a.im;
    return !isinf(a.re) ? C{{none, none}} : a.re < 0 ? C{{0, copysignS(0, a.im)}} : C{{a.re, none}};
  }}
  R c = cosS(a.im), s = sinS(a.im);
  if (isgreater(a.re, most)) {{
    R e = expS(a.re - shift), last = expS(shift);
    return C{{e * c * last, e * s * last}};
  }}
  R e = expS(a.re);
  return C{{e * c, e * s}};
"""


# Near the unit circle the logarithm of the absolute value is that of 1 and a small number, which is computed
# from the squares and what these have lost.
def _sum(a: str, b: str, total: str, lost: str) -> str:
    """Return C text that defines ``total``, the rounded sum of ``a`` and ``b``, and ``lost``, its error."""
    part = f"{total} - {a}"
    return f"R {total} = {a} + {b}, {lost} = ({a} - ({total} - ({part}))) + ({b} - ({part}));"


_LOG = f"""
  R p = fabsS(a.re), q = fabsS(a.im), angle = atan2S(a.im, a.re);
  if (isless(p, q)) {{ R other = p; p = q; q = other; }}
  if (isgreater(p, (R)0.4) && isless(p, 3) && !isnan(q)) {{
    R pp = p * p, qq = q * q, pl = fmaS(p, p, -pp), ql = fmaS(q, q, -qq), one = -1;
    {_sum("pp", "one", "d", "l1")}
    {_sum("d", "qq", "s", "l2")}
    {_sum("s", "l1", "u", "l3")}
    {_sum("u", "pl", "v", "l4")}
    {_sum("v", "ql", "w", "l5")}
    return C{{(R)0.5 * log1pS(w + (l2 + l3 + l4 + l5)), angle}};
  }}
  R large = sizeof(R) == 4 ? 1e38f : 1e307, small = sizeof(R) == 4 ? 1e-30f : 1e-290;
  R two = (R)0.693147180559945309417232121458176568;
  if (isgreater(p, large)) return C{{logS(hypotS(p / 2, q / 2)) + two, angle}};
  if (isless(p, small) && p > 0) {{
    R up = (R)18446744073709551616.0;
    return C{{logS(hypotS(p * up, q * up)) - 64 * two, angle}};
  }}
  return C{{logS(hypotS(p, q)), angle}};
"""

_SQRT = """
  R x = a.re, y = a.im, none = y - y;
  if (x == 0 && y == 0) return C{0, y};
  if (isinf(y)) return C{fabsS(y), y};
  if (isnan(x)) return C{x, x};
  if (isinf(x)) return x < 0 ? C{fabsS(none), copysignS(x, y)} : C{x, copysignS(none, y)};
  R large = sizeof(R) == 4 ? 1e37f : 1e307, small = sizeof(R) == 4 ? 1e-30f : 1e-290, back = 1;
  R most = isgreater(fabsS(x), fabsS(y)) ? fabsS(x) : fabsS(y);
  if (isgreater(most, large)) {
    x = x / 16, y = y / 16, back = 4;
  } else if (isless(most, small)) {
    x = x * (R)18446744073709551616.0, y = y * (R)18446744073709551616.0, back = (R)(1.0 / 4294967296.0);
  }
  R t = sqrtS((fabsS(x) + hypotS(x, y)) / 2), u = fabsS(y) / (2 * t);
  return a.re < 0 ? C{u * back, copysignS(t * back, y)} : C{t * back, copysignS(u * back, y)};
"""


def _hyperbolic(h: str, t: str, even: bool, result: str) -> str:
    """Return the text of a complex function with the parts sinh(h) cos(t) and cosh(h) sin(t).  If ``even``,
    they are cosh(h) cos(t) and sinh(h) sin(t)."""
    first, second = ("ch", "sh") if even else ("sh", "ch")
    return f"""{_SCALE}
  R h = {h}, t = {t}, none = t - t, p, q, x = fabsS(h), last = 1, sh, ch;
  if (isgreater(x, most)) {{
    sh = ch = expS(x - shift) / 2;
    last = expS(shift);
  }} else if (isless(x, 1)) {{
    R m = expm1S(x);
    sh = (m + m / (1 + m)) / 2, ch = 1 + m * m / (2 * (1 + m));
  }} else {{
    R e = expS(x);
    sh = (e - 1 / e) / 2, ch = (e + 1 / e) / 2;
  }}
  sh = copysignS(sh, h);
  if (!isfinite(t)) {{
    p = isinf(h) ? x : {"none" if even else "h == 0 ? h : none"};
    q = {"h == 0 ? x : none" if even else "none"};
  }} else if (t == 0) {{
    p = {first} * last, q = {"isnan(h) ? t : t * copysignS(1, h)" if even else "t"};
  }} else {{
    p = {first} * cosS(t) * last, q = {second} * sinS(t) * last;
  }}
  return C{{{result}}};
"""


COMPLEX: dict[tuple[str, str], str] = {
    ("exp", "c"): _EXP,
    ("log", "c"): _LOG,
    ("sqrt", "c"): _SQRT,
    ("sinh", "c"): _hyperbolic("a.re", "a.im", False, "p, q"),
    ("cosh", "c"): _hyperbolic("a.re", "a.im", True, "p, q"),
    ("sin", "c"): _hyperbolic("a.im", "a.re", False, "q, p"),
    ("cos", "c"): _hyperbolic("-a.im", "a.re", True, "p, q"),
}
"""The bodies of functions of one complex number, by name and kind; see `ops.BODIES`."""
