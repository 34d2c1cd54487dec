// A stand-in for Vitis HLS's hls_stream.h in C simulation.
#pragma once
#include "bounded_fifos.h"

namespace hls {
template <typename T>
using stream = csim::Fifo<T>;
}
