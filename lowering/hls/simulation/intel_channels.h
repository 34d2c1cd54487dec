// What the text of kernels in OpenCL for Intel's FPGA SDK needs to be C++, for C simulation.
#pragma once
#include <math.h>
#include <string.h>

#include "bounded_fifos.h"

#define __kernel static
#define __global
#define restrict __restrict
#define read_channel_intel(channel) (channel).read()
#define write_channel_intel(channel, value) (channel).write(value)

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

static inline float as_float(uint bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline double as_double(ulong bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline int popcount(ulong x) { return __builtin_popcountll(x); }
