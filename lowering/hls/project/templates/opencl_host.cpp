// Host program of @source@ with OpenCL: runs the kernels once on data/*.npy.
//   host AOCX [FOLDER]       BANKS=1 in the environment: each buffer in its bank of memory
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <chrono>
#include <cstring>

#include "npy.h"

static void check(cl_int status, const char *what) {
  if (status == CL_SUCCESS) return;
  fprintf(stderr, "%s: OpenCL error %d\n", what, status);
  exit(2);
}

static std::string platform_name(cl_platform_id platform) {
  char name[256] = "";
  clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr);
  return name;
}

// The first FPGA, or emulator of one.
static cl_device_id fpga() {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  check(clGetPlatformIDs(16, platforms, &count), "platforms");
  for (cl_uint i = 0; i < count && i < 16; i++) {
    cl_device_id device;
    if (platform_name(platforms[i]).find("FPGA") == std::string::npos) continue;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, nullptr) == CL_SUCCESS) return device;
  }
  fprintf(stderr, "there is no platform of FPGAs\n");
  exit(2);
}

static std::vector<unsigned char> contents(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(2);
  }
  std::vector<unsigned char> found;
  for (int c; (c = fgetc(file)) != EOF;) found.push_back((unsigned char)c);
  fclose(file);
  return found;
}

// The program of an .aocx file; of a .cl file by the compiler of an emulator that has one.
static cl_program program_of(cl_context context, cl_device_id device, const char *path) {
  std::vector<unsigned char> data = contents(path);
  const unsigned char *bytes = data.data();
  size_t size = data.size();
  cl_int status, loaded;
  cl_program program;
  if (size_t length = strlen(path); length > 3 && !strcmp(path + length - 3, ".cl")) {
    const char *text = (const char *)bytes;
    program = clCreateProgramWithSource(context, 1, &text, &size, &status);
  } else {
    program = clCreateProgramWithBinary(context, 1, &device, &size, &bytes, &loaded, &status);
  }
  check(status, path);
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "build");
  return program;
}

static cl_mem buffer(cl_context context, size_t size, int bank) {
  cl_int status;
  cl_mem_flags flags = CL_MEM_READ_WRITE | (getenv("BANKS") ? (cl_mem_flags)(bank + 1) << 16 : 0);
  cl_mem found = clCreateBuffer(context, flags, size, nullptr, &status);
  check(status, "buffer");
  return found;
}

struct Argument {
  const void *value;
  size_t size;
};

template <typename T>
Argument argument(const T &value) {
  return {&value, sizeof value};
}

struct Started {
  const char *name;
  std::vector<Argument> arguments;
};

// Kernels at the same time, each in a queue of its own: they wait for each other.
static void run(cl_context context, cl_device_id device, cl_program program, const std::vector<Started> &stage) {
  std::vector<cl_command_queue> queues;
  for (const Started &one : stage) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, one.name, &status);
    check(status, one.name);
    for (cl_uint k = 0; k < one.arguments.size(); k++)
      check(clSetKernelArg(kernel, k, one.arguments[k].size, one.arguments[k].value), one.name);
    queues.push_back(clCreateCommandQueue(context, device, 0, &status));
    check(status, "queue");
    size_t single = 1;
    check(clEnqueueNDRangeKernel(queues.back(), kernel, 1, nullptr, &single, &single, 0, nullptr, nullptr), one.name);
    check(clFlush(queues.back()), one.name);
    clReleaseKernel(kernel);
  }
  for (cl_command_queue queue : queues) {
    check(clFinish(queue), "kernels");
    clReleaseCommandQueue(queue);
  }
}

int main(int count, char **given) {
  if (count < 2) {
    fprintf(stderr, "usage: %s AOCX [FOLDER]\n", given[0]);
    return 2;
  }
  const std::string folder = count > 2 ? given[2] : ".";
  cl_int status;
  cl_device_id device = fpga();
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "context");
  cl_program program = program_of(context, device, given[1]);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check(status, "queue");
