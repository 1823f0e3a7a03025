// The kernels' own language on the host: each thread of a block is a fiber, and a barrier hands over to the next one.
// The library includes it for the sizes of the kernels' memory; the tests run whole kernels with it.
#pragma once
#define SVAE_EMULATE
#define __device__
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>
#include <ucontext.h>

namespace svae {

struct double2 {
  double x, y;
};
struct float2 {
  float x, y;
};

class Emulator {
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done = false;
  };
  struct Barrier {
    int arrived = 0, alive = 0, generation = 0;
  };
  std::vector<Fiber> fibers_;
  std::vector<Barrier> warps_;
  Barrier block_;
  ucontext_t main_;
  int current_ = 0;

  void yield() { swapcontext(&fibers_[current_].context, &main_); }
  void wait(Barrier& b) {
    const int generation = b.generation;
    if (++b.arrived == b.alive) {
      b.arrived = 0;
      b.generation++;
      return;
    }
    while (b.generation == generation) yield();
  }
  static void leave(Barrier& b) {
    if (--b.alive && b.arrived == b.alive) {
      b.arrived = 0;
      b.generation++;
    }
  }

 public:
  static Emulator*& active() {
    static thread_local Emulator* e = nullptr;
    return e;
  }
  static std::minstd_rand& chance() {
    static std::minstd_rand generator;
    return generator;
  }
  void (*body)(void*) = nullptr;
  void* data = nullptr;
  int block = 0, threads = 0;
  std::vector<double> exchange;
  bool misaligned = false;  // a device faults where the host does not
  static void check(const void* p, size_t size) {
    if (reinterpret_cast<uintptr_t>(p) % size) active()->misaligned = true;
  }

  int thread() const { return current_; }
  void sync_block() { wait(block_); }
  void sync_warp() { wait(warps_[current_ / 32]); }
  bool any(bool x) {
    exchange[current_] = x;
    sync_block();
    bool found = false;
    for (double v : exchange) found = found || v != 0;
    sync_block();
    return found;
  }
  bool any_in_warp(bool x) {
    exchange[current_] = x;
    sync_warp();
    bool found = false;
    const int first = current_ / 32 * 32;
    for (int i = first; i < first + 32 && i < threads; i++) found = found || exchange[i] != 0;
    sync_warp();
    return found;
  }
  template <class V>
  V shuffle(V v, int from) {
    exchange[current_] = double(v);
    sync_warp();
    const V got = V(exchange[current_ / 32 * 32 + from]);
    sync_warp();
    return got;
  }
  static void start() {
    Emulator& e = *active();
    e.body(e.data);
    e.fibers_[e.current_].done = true;
    leave(e.block_);
    leave(e.warps_[e.current_ / 32]);
    e.yield();
  }
  void run(int count) {
    active() = this;
    threads = count;
    exchange.assign(threads, 0);
    fibers_.resize(threads);
    warps_.assign((threads + 31) / 32, Barrier());
    block_ = Barrier();
    block_.alive = threads;
    for (int i = 0; i < threads; i++) {
      warps_[i / 32].alive++;
      Fiber& f = fibers_[i];
      f.done = false;
      f.stack.resize(1 << 16);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = nullptr;
      makecontext(&f.context, &Emulator::start, 0);
    }
    std::vector<int> order(threads);
    for (int i = 0; i < threads; i++) order[i] = i;
    for (bool left = true; left;) {
      left = false;
      std::shuffle(order.begin(), order.end(), chance());  // as on a device, any warp may be ahead up to a barrier
      for (const int i : order) {
        current_ = i;
        if (fibers_[current_].done) continue;
        left = true;
        swapcontext(&main_, &fibers_[current_].context);
      }
    }
  }
};

struct ThreadIndex {
  struct {
    operator int() const { return Emulator::active()->thread(); }
  } x;
};
struct BlockIndex {
  struct {
    operator int() const { return Emulator::active()->block; }
  } x;
};
struct BlockSize {
  struct {
    operator int() const { return Emulator::active()->threads; }
  } x;
};
static BlockSize blockDim;
static ThreadIndex threadIdx;
static BlockIndex blockIdx;

inline void __syncthreads() { Emulator::active()->sync_block(); }
inline bool __syncthreads_or(bool x) { return Emulator::active()->any(x); }
inline void __threadfence() {}
inline void __syncwarp() { Emulator::active()->sync_warp(); }
inline bool __any_sync(unsigned, bool x) { return Emulator::active()->any_in_warp(x); }
template <class V>
inline V __shfl_xor_sync(unsigned, V v, int i) {
  Emulator& e = *Emulator::active();
  return e.shuffle(v, e.thread() % 32 ^ i);
}
template <class V>
inline V __shfl_sync(unsigned, V v, int from) {
  return Emulator::active()->shuffle(v, from);
}
inline int __double2hiint(double x) {
  int64_t bits;
  std::memcpy(&bits, &x, 8);
  return int(bits >> 32);
}
inline int __double2loint(double x) {
  int64_t bits;
  std::memcpy(&bits, &x, 8);
  return int(bits);
}
inline double __longlong_as_double(int64_t bits) {
  double x;
  std::memcpy(&x, &bits, 8);
  return x;
}
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((int64_t(high) << 32) | (int64_t(low) & 0xffffffff));
}
inline float __fdividef(float x, float y) { return x / y; }
using std::fma;
using std::frexp;
using std::log;
using std::sqrt;

}  // namespace svae
