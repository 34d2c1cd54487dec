// C simulation of process networks: processes are threads, FIFOs have a depth and block.
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

namespace csim {

// What a report says of a FIFO.
class State {
 public:
  virtual std::string state() const = 0;
};

// The threads, and when none of them can go on.
class Monitor {
 public:
  std::mutex mutex;
  std::vector<const State *> fifos;
  std::vector<std::string> names, waits;  // of all threads, of which some have ended
  int live = 0, blocked = 0, awaited = 0;  // awaited: those live that end

  static Monitor &get() {
    static Monitor &one = *new Monitor;  // threads that go on for ever use it to the end of the program
    return one;
  }
  static int &process() {
    static thread_local int number = -1;
    return number;
  }
  int begin(const std::string &name, bool ends) {
    names.push_back(name);
    waits.emplace_back();
    live++;
    awaited += ends;
    return (int)names.size() - 1;
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
    awaited--;
    check();
  }

 private:
  std::condition_variable changes;
  long epoch = 0;

  void check() {
    if (awaited == 0 || blocked < live) return;
    fprintf(stderr, "deadlock: no process can go on\n");
    for (size_t i = 0; i < names.size(); i++)
      if (!waits[i].empty()) fprintf(stderr, "  %s waits to %s\n", names[i].c_str(), waits[i].c_str());
    for (auto fifo : fifos) fprintf(stderr, "  %s\n", fifo->state().c_str());
    fflush(stderr);
    _Exit(3);
  }
};

template <typename T>
class Fifo : public State {
 public:
  explicit Fifo(const char *name = "", size_t depth = 2) : name(name), depth(depth) {}
  Fifo(const Fifo &) = delete;
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
  std::string state() const override {
    return "fifo " + name + " holds " + std::to_string(held.size()) + " of " + std::to_string(depth);
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

// The FIFOs of which a report tells from now on.
inline void watch(std::vector<const State *> fifos) {
  std::lock_guard<std::mutex> lock(Monitor::get().mutex);
  Monitor::get().fifos = fifos;
}

// Run processes at the same time, and wait until all have ended.
inline void run(std::vector<Process> all) {
  Monitor &monitor = Monitor::get();
  std::vector<std::thread> threads;
  std::unique_lock<std::mutex> lock(monitor.mutex);
  for (auto &one : all) {
    int number = monitor.begin(one.name, true);
    threads.emplace_back([&monitor, &one, number] {
      Monitor::process() = number;
      one.body();
      std::lock_guard<std::mutex> lock(monitor.mutex);
      monitor.ended();
    });
  }
  lock.unlock();
  for (auto &one : threads) one.join();
}

// Begin processes each of which starts again when it has ended.
inline void run_for_ever(std::vector<Process> all) {
  Monitor &monitor = Monitor::get();
  std::lock_guard<std::mutex> lock(monitor.mutex);
  for (auto &one : all) {
    int number = monitor.begin(one.name, false);
    std::thread([body = one.body, number] {
      Monitor::process() = number;
      for (;;) body();
    }).detach();
  }
}

}  // namespace csim
