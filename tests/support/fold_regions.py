"""Regions with sums and extrema, for streaming circuits."""

SUMS = """region() {
  in A: f64[9, 11];  in B: f64[9, 11];  out s: f64[];  out r: f64[9];  out c: f64[11];  inout m: f32[9]
  s[] add= multiply(A[i,j], B[i,j]) init 0.0 for i<9, j<11
  r[i] add= A[i,j] init 1.5 for i<9, j<11
  c[j] maximum= B[i,j] init -inf for i<9, j<11
  m[i] multiply= cast:f32(A[i,j]) for i<9, j<11
}"""
"""A sum over all, sums of rows, extrema of columns, and products that go on from what there is."""

TWICE = """region() {
  in A: f64[9];  in a0: f64[];  out B: f64[9];  temp s: f64[]
  s[] maximum= A[i] init -inf for i<9
  B[i] = multiply(A[i], subtract(s[], a0[])) for i<9
}"""
"""Two stages that read one array."""
