// A stand-in for Vitis HLS's hls_stream.h in C simulation: processes are threads, FIFOs have a depth and block.
#pragma once
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hls {

// The threads of a stage, and when none of them can go on.
class Monitor {
 public:
  std::mutex mutex;
  std::vector<std::function<std::string()>> fifos;
  std::vector<std::string> names, waits;
  int live = 0, blocked = 0;

  static Monitor &get() {
    static Monitor one;
    return one;
  }
  static int &process() {
    static thread_local int number = -1;
    return number;
  }
  // Wait until a FIFO has changed; the mutex is held.
  void wait(std::unique_lock<std::mutex> &lock, const std::string &what) {
    waits[process()] = what;
    blocked++;
    check();
    long before = epoch;
    changes.wait(lock, [&] { return epoch != before; });
    waits[process()].clear();
  }
  void changed() {
    epoch++;
    blocked = 0;  // all threads that wait look again
    changes.notify_all();
  }
  void ended() {
    live--;
    check();
  }

 private:
  std::condition_variable changes;
  long epoch = 0;

  void check() {
    if (live == 0 || blocked < live) return;
    fprintf(stderr, "deadlock: no process can go on\n");
    for (size_t i = 0; i < names.size(); i++)
      if (!waits[i].empty()) fprintf(stderr, "  %s waits to %s\n", names[i].c_str(), waits[i].c_str());
    for (auto &state : fifos) fprintf(stderr, "  %s\n", state().c_str());
    fflush(stderr);
    _Exit(3);
  }
};

template <typename T>
class stream {
 public:
  explicit stream(const char *name = "", size_t depth = 2) : name(name), depth(depth) {
    Monitor::get().fifos.push_back([this] {
      return "fifo " + this->name + " holds " + std::to_string(held.size()) + " of " + std::to_string(this->depth);
    });
  }
  stream(const stream &) = delete;
  T read() {
    Monitor &monitor = Monitor::get();
    std::unique_lock<std::mutex> lock(monitor.mutex);
    while (held.empty()) monitor.wait(lock, "receive from " + name);
    T value = held.front();
    held.pop_front();
    monitor.changed();
    return value;
  }
  void write(const T &value) {
    Monitor &monitor = Monitor::get();
    std::unique_lock<std::mutex> lock(monitor.mutex);
    while (held.size() >= depth) monitor.wait(lock, "send to " + name);
    held.push_back(value);
    monitor.changed();
  }

 private:
  std::string name;
  size_t depth;
  std::deque<T> held;
};

struct Process {
  const char *name;
  std::function<void()> body;
};

// Run the processes of a stage at the same time.
inline void processes(std::vector<Process> all) {
  Monitor &monitor = Monitor::get();
  monitor.names.clear();
  for (auto &one : all) monitor.names.push_back(one.name);
  monitor.waits.assign(all.size(), "");
  monitor.live = (int)all.size();
  monitor.blocked = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); i++)
    threads.emplace_back([&monitor, &all, i] {
      Monitor::process() = (int)i;
      all[i].body();
      std::lock_guard<std::mutex> lock(monitor.mutex);
      monitor.ended();
    });
  for (auto &one : threads) one.join();
  monitor.fifos.clear();
}

}  // namespace hls
