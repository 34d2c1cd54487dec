"""CUDA C++ run by the processor: a block's threads are fibres, which take turns at barriers.

Shared memory is static, since one block runs at a time.  Between two barriers the threads of a block run in
an order that is drawn anew each time, so that a barrier that is missing gives wrong results; one that not all
threads of a block come by is an error.
"""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HEAD = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define int8_t cuda_int8_t
#define int16_t cuda_int16_t
#define int32_t cuda_int32_t
#define int64_t cuda_int64_t
#define uint8_t cuda_uint8_t
#define uint16_t cuda_uint16_t
#define uint32_t cuda_uint32_t
#define uint64_t cuda_uint64_t
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static
static struct { unsigned x; } blockIdx, threadIdx;
static ucontext_t caller, fibres[1024];
static char *stacks[1024];
static bool finished[1024];
static int current;
static void __syncthreads() { swapcontext(&fibres[current], &caller); }
static float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }
static double __longlong_as_double(long long u) { double x; memcpy(&x, &u, 8); return x; }
static int __popcll(unsigned long long u) { return __builtin_popcountll(u); }
static float widened(unsigned short u) { _Float16 h; memcpy(&h, &u, 2); return (float)h; }
template <class T> static unsigned short rounded(T x) {
  _Float16 h = (_Float16)x; unsigned short u; memcpy(&u, &h, 2); return u;
}
static void (*body)(void **);
static void **given;
static void fibre() { body(given); finished[current] = true; swapcontext(&fibres[current], &caller); }
static int run(unsigned blocks, unsigned threads) {
  const size_t size = 1 << 16;
  int order[1024];
  for (unsigned b = 0; b < blocks; b++) {
    blockIdx.x = b;
    for (unsigned t = 0; t < threads; t++) {
      if (!stacks[t]) stacks[t] = (char *)malloc(size);
      getcontext(&fibres[t]);
      fibres[t].uc_stack.ss_sp = stacks[t], fibres[t].uc_stack.ss_size = size, fibres[t].uc_link = &caller;
      makecontext(&fibres[t], fibre, 0);
      finished[t] = false, order[t] = t;
    }
    for (unsigned there = 0; there < threads;) {
      for (unsigned t = threads - 1; t > 0; t--) {
        unsigned other = rand() % (t + 1);
        int one = order[t]; order[t] = order[other]; order[other] = one;
      }
      for (unsigned k = 0; k < threads; k++) {
        threadIdx.x = current = order[k];
        swapcontext(&caller, &fibres[current]);
        there += finished[current];
      }
      if (there && there < threads) return 1;
    }
  }
  return 0;
}
"""

ASSEMBLY = {
    'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits))': "x = widened(bits)",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x))': "bits = rounded(x)",
    'asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x))': "bits = rounded(x)",
}

COMPILER = shutil.which("g++")


class HostFunction:
    """A phase of a kernel, called with the number of blocks, of threads, and its parameters: NumPy scalars,
    or integers of 64 bits."""

    def __init__(self, name: str, types: list[str], function: Any) -> None:
        self.name, self.types, self.function = name, types, function

    def __call__(self, blocks: int, threads: int, parameters: tuple[Any, ...]) -> None:
        assert len(parameters) == len(self.types), (self.types, parameters)
        assert all(isinstance(one, (np.generic, int)) for one in parameters), parameters
        kept = [np.array(one) for one in parameters]
        for one, kind in zip(kept, self.types, strict=True):
            assert one.dtype == np.int64 or "*" not in kind, (kind, one)
        pointers = (ctypes.c_void_p * len(kept))(*(one.ctypes.data for one in kept))
        assert self.function(blocks, threads, pointers) == 0, (
            f"{self.name}: not all threads come by a barrier"
        )


@cache
def compiled(source: str, options: tuple[str, ...]) -> dict[str, HostFunction]:
    """The functions of a source, by name."""
    for there, here in ASSEMBLY.items():
        assert there in source or "asm(" not in source
        source = source.replace(there, here)
    heads = re.findall(r'extern "C" __global__ __launch_bounds__\(\d+\) void (\w+)\(([^{]*)\) \{', source)
    assert heads, source
    types = {name: [_kind(one) for one in _arguments(text)] for name, text in heads}
    text = HEAD + source
    for name, kinds in types.items():
        cast = ", ".join(f"*({kind} *)p[{k}]" for k, kind in enumerate(kinds))
        text += f"static void call_{name}(void **p) {{ {name}({cast}); }}\n"
        text += f'extern "C" int launch_{name}(unsigned blocks, unsigned threads, void **p) {{\n'
        text += f"  body = call_{name}, given = p;\n  return run(blocks, threads);\n}}\n"
    folder = Path(tempfile.gettempdir(), "dcarray-cuda-on-host")
    folder.mkdir(exist_ok=True)
    defines = [option for option in options if option.startswith("-D")]
    name = hashlib.sha256(repr((text, defines)).encode()).hexdigest()[:20]
    file = folder / f"{name}-{np.random.default_rng().integers(1 << 60)}"  # other processes make the same
    file.with_suffix(".cpp").write_text(text)
    flags = ["-std=gnu++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", *defines]
    command = [str(COMPILER), *flags, str(file.with_suffix(".cpp")), "-o", str(file.with_suffix(".so"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + source
    library = ctypes.CDLL(str(file.with_suffix(".so")))
    file.with_suffix(".cpp").unlink()
    file.with_suffix(".so").unlink()
    return {name: HostFunction(name, types[name], getattr(library, f"launch_{name}")) for name in types}


def _arguments(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _kind(argument: str) -> str:
    """The type of a parameter, without what says that it is constant by itself."""
    kind = argument.rpartition(" ")[0] if "*" not in argument else argument.partition("*")[0] + "*"
    return kind if "*" in kind else kind.removeprefix("const ")
