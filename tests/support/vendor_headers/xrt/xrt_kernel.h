// A stand-in for the part of XRT that host programs of projects use: "the board" runs PROCESSES.
#pragma once
#include <cstring>
#include <string>
#include <vector>

enum xclBOSyncDirection { XCL_BO_SYNC_BO_TO_DEVICE, XCL_BO_SYNC_BO_FROM_DEVICE };

namespace xrt {

struct uuid {};

struct device {
  explicit device(unsigned) {}
  uuid load_xclbin(const std::string &) { return {}; }
};

// A buffer has two copies, which only sync() makes equal.
struct bo {
  std::vector<char> host, memory;
  int group;
  bo(const device &, size_t size, int group) : host(size), memory(size), group(group) {}
  void write(const void *from) { memcpy(host.data(), from, host.size()); }
  void read(void *to) { memcpy(to, host.data(), host.size()); }
  void sync(xclBOSyncDirection direction) {
    (direction == XCL_BO_SYNC_BO_TO_DEVICE ? memory : host) = direction == XCL_BO_SYNC_BO_TO_DEVICE ? host : memory;
  }
};

struct run {
  void wait() {}
};

struct kernel {
  kernel(const device &, const uuid &, const std::string &) {}
  int group_id(int argument) { return argument; }
  template <typename... A>
  run operator()(A &&...arguments) {
    int argument = 0;
    if (!(in_group(arguments, argument++) && ...)) throw "a buffer is in the group of another argument";
    start(PROCESSES, arguments...);
    return {};
  }

 private:
  static bool in_group(const bo &buffer, int argument) { return buffer.group == argument; }
  template <typename T>
  static bool in_group(const T &, int) {
    return true;
  }
  template <typename P>
  static P taken(bo &buffer) {
    return reinterpret_cast<P>(buffer.memory.data());
  }
  template <typename P, typename T>
  static P taken(const T &value) {
    return value;
  }
  template <typename... P, typename... A>
  void start(void (*processes)(P...), A &...arguments) {
    processes(taken<P>(arguments)...);
  }
};

}  // namespace xrt
