// Host program of @source@ with XRT: runs the kernel once on data/*.npy.
//   host XCLBIN [FOLDER]
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <chrono>

#include "npy.h"

int main(int count, char **given) {
  if (count < 2) {
    fprintf(stderr, "usage: %s XCLBIN [FOLDER]\n", given[0]);
    return 2;
  }
  const std::string folder = count > 2 ? given[2] : ".";
