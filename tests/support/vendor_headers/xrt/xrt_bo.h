#include "xrt_kernel.h"
