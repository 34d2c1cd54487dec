// C simulation of process networks: processes take turns in one thread, FIFOs have a depth and block.
//
// A process runs until it has to wait for a FIFO, and again after that FIFO has changed (ucontext.h): any order of
// steps that the FIFOs allow gives the same results, and none is left to run just when there is a deadlock.
#pragma once
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace csim {

// What a report says of a FIFO.
class State {
 public:
  virtual std::string state() const = 0;
};

struct Process {
  const char *name;
  std::function<void()> body;
};

// A process on its way, with a stack of its own.
struct Running {
  static constexpr size_t STACK = 256 << 20;  // bytes of addresses: memory is taken by what is used of them
  Process process;
  bool ends;  // else it begins again when it has ended
  const char *what;  // it waits to do, if it waits
  const std::string *fifo;
  ucontext_t context;
  char *stack;
};

// Who runs, who may run, and when nobody can go on.
class Scheduler {
 public:
  std::vector<const State *> fifos;

  static Scheduler &get() {
    static Scheduler &one = *new Scheduler;
    return one;
  }
  void begin(const Process &process, bool ends) {
    Running *one = new Running{process, ends, nullptr, nullptr, {}, nullptr};
    if (stacks.empty()) {
      void *fresh =
          mmap(nullptr, Running::STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (fresh == MAP_FAILED) {
        perror("the stack of a process");
        _Exit(2);
      }
      stacks.push_back((char *)fresh);
    }
    one->stack = stacks.back();
    stacks.pop_back();
    getcontext(&one->context);
    one->context.uc_stack.ss_sp = one->stack;
    one->context.uc_stack.ss_size = Running::STACK;
    one->context.uc_link = nullptr;
    makecontext(&one->context, &Scheduler::enter, 0);
    all.push_back(one);
    ready.push_back(one);
    awaited += ends;
  }
  // Run until all processes that end have done so.
  void run() {
    if (awaited) next(main);
    std::vector<Running *> left;
    for (Running *one : all) {
      if (!one->ends) {
        left.push_back(one);
        continue;
      }
      stacks.push_back(one->stack);
      delete one;
    }
    all = left;
  }
  // Let others run until the FIFO that the process waits for, which remembers it in ``waiting``, has changed.
  void wait(Running *&waiting, const char *what, const std::string &fifo) {
    Running *mine = waiting = current;
    mine->what = what;
    mine->fifo = &fifo;
    next(mine->context);
    mine->what = nullptr;
  }
  void wake(Running *&waiting) {
    if (waiting) ready.push_back(waiting);
    waiting = nullptr;
  }

 private:
  std::vector<Running *> all;
  std::deque<Running *> ready;
  std::vector<char *> stacks;  // of processes that have ended
  Running *current = nullptr;
  ucontext_t main;
  int awaited = 0;  // those that end

  static void enter() {
    Scheduler &one = get();
    Running *mine = one.current;
    do mine->process.body();
    while (!mine->ends);
    if (--one.awaited)
      one.next(mine->context);
    else
      setcontext(&one.main);
  }
  // Go on with the next one that may run.
  void next(ucontext_t &from) {
    if (ready.empty()) report();
    current = ready.front();
    ready.pop_front();
    swapcontext(&from, &current->context);
  }
  void report() {
    fprintf(stderr, "deadlock: no process can go on\n");
    for (Running *one : all)
      if (one->what) fprintf(stderr, "  %s waits to %s%s\n", one->process.name, one->what, one->fifo->c_str());
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
    Scheduler &scheduler = Scheduler::get();
    while (held.empty()) scheduler.wait(reader, "receive from ", name);
    T value = held.front();
    held.pop_front();
    scheduler.wake(writer);
    return value;
  }
  void write(const T &value) {
    Scheduler &scheduler = Scheduler::get();
    while (held.size() >= depth) scheduler.wait(writer, "send to ", name);
    held.push_back(value);
    scheduler.wake(reader);
  }
  std::string state() const override {
    return "fifo " + name + " holds " + std::to_string(held.size()) + " of " + std::to_string(depth);
  }

 private:
  std::string name;
  size_t depth;
  std::deque<T> held;
  Running *reader = nullptr, *writer = nullptr;  // that wait
};

// The FIFOs of which a report tells from now on.
inline void watch(std::vector<const State *> fifos) { Scheduler::get().fifos = fifos; }

// Run processes at the same time, and wait until all have ended.
inline void run(const std::vector<Process> &all) {
  for (auto &one : all) Scheduler::get().begin(one, true);
  Scheduler::get().run();
}

// Begin processes each of which starts again when it has ended.
inline void run_for_ever(const std::vector<Process> &all) {
  for (auto &one : all) Scheduler::get().begin(one, false);
}

}  // namespace csim
