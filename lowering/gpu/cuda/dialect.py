"""CUDA C++ as a dialect of C, for printed kernels; NVRTC compiles their text without any header file."""

from __future__ import annotations

from dcarray.lowering.c_family.device_kernels import DeviceDialect

# What is overloaded for float and double does not take an integer beside a double: `copysign(0, x)`.
# A templated constructor converts its arguments, where C++ refuses to narrow those between plain braces.
_COMPLEX = """struct {name} {{
  {part} re, im;
  {name}() = default;
  template <class A, class B> __device__ {name}(A a, B b) : re(({part})a), im(({part})b) {{}}
}};"""

_HEAD = f"""typedef INDEX index_t;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
{_COMPLEX.format(name="complex64", part="float")}
{_COMPLEX.format(name="complex128", part="double")}
static __device__ __forceinline__ float half_to_float(uint16_t bits) {{
  float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x;
}}
static __device__ __forceinline__ uint16_t float_to_half(float x) {{
  uint16_t bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits;
}}
static __device__ __forceinline__ uint16_t double_to_half(double x) {{
  uint16_t bits; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); return bits;
}}
static __device__ __forceinline__ double with_sign(double a, double b) {{ return copysign(a, b); }}
#define copysign with_sign
#define bits_float32(bits) __uint_as_float((uint32_t)(bits))
#define bits_float64(bits) __longlong_as_double((long long)(bits))
#define __builtin_popcountll(x) __popcll((unsigned long long)(x))
#define feraiseexcept(flags)
#define FUSED
#define isless(a, b) ((a) < (b))
#define islessequal(a, b) ((a) <= (b))
#define isgreater(a, b) ((a) > (b))
#define isgreaterequal(a, b) ((a) >= (b))
"""

CUDA = DeviceDialect(
    "CUDA", _HEAD, composite="{T}", int64="{}LL", uint64="{}ULL", int64_min="(-9223372036854775807LL - 1)",
    function="static __device__ __forceinline__ ", phase='extern "C" __global__ ',
    restrict="__restrict__ ", block="blockIdx.x", thread="threadIdx.x", barrier="__syncthreads();",
    shared="__shared__ ", bounds="__launch_bounds__({threads}) ",
)  # fmt: skip
"""The dialect of CUDA.  The compiler's options (`nvrtc.options`) define ``INDEX``, the type of indices, and
keep products and sums from being fused into one operation."""
