"""OpenCL C as a dialect of C: OpenCL 1.2 with 64-bit floating point where kernels use it."""

from __future__ import annotations

from dcarray.lowering.c_family.device_kernels import DeviceDialect

_HEAD = """#pragma OPENCL FP_CONTRACT OFF
typedef INDEX index_t;
typedef char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef uchar uint8_t; typedef ushort uint16_t; typedef uint uint32_t; typedef ulong uint64_t;
typedef struct { float re, im; } complex64;
inline float half_to_float(ushort bits) { return vload_half(0, (const half *)&bits); }
inline ushort float_to_half(float x) { ushort bits; vstore_half_rte(x, 0, (half *)&bits); return bits; }
#ifdef FP64
typedef struct { double re, im; } complex128;
inline ushort double_to_half(double x) { ushort bits; vstore_half_rte(x, 0, (half *)&bits); return bits; }
#endif
#ifdef PROCESSOR
#define VARYING(T) \\
  T __attribute__((overloadable)) varying_fmod(T a, T b) { volatile T x = a; return fmod(x, b); }
VARYING(float)
#ifdef FP64
VARYING(double)
#endif
#define fmod varying_fmod
#endif
#define bits_float32(bits) as_float((uint)(bits))
#define bits_float64(bits) as_double((ulong)(bits))
#define __builtin_popcountll(x) popcount((ulong)(x))
#define feraiseexcept(flags)
#define FUSED
"""

OPENCL_C = DeviceDialect(
    "OpenCL",
    _HEAD,
    int64="{}L",
    uint64="{}UL",
    int64_min="LONG_MIN",
    float32_suffix="",
    function="inline ",
    phase="kernel ",
    global_space="global ",
    block="get_group_id(0)",
    thread="get_local_id(0)",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    shared="local ",
    bounds="__attribute__((reqd_work_group_size({threads}, 1, 1))) ",
    in_order="#pragma clang loop vectorize(disable)",
)
"""The dialect of OpenCL C.  The compiler's options define ``INDEX``, the type of indices, and ``FP64`` if the
device has double precision.

``PROCESSOR`` is defined for processors: Intel's compiler ends the process where the first argument of
``fmod`` is the same for all threads of a block, so the compiler must not know that it is.

Intel's runtime for processors takes the iterations of a loop for independent where a block has fewer threads
than a vector has elements: ``p[i + 1] = p[i - 1] + q[i]`` came out wrong with 1, 2 and 4 threads.
"""
