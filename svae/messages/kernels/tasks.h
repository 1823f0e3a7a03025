// Work shared between the thread that calls and XLA's pool.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace svae {

// Tasks 0 .. n - 1 over the caller and the threads of the pool. The caller takes tasks too and waits only for those
// already begun, so it makes progress even when every thread of the pool waits in a call of its own.
class Tasks : public std::enable_shared_from_this<Tasks> {
  const int64_t n_;
  const std::function<void(int64_t)> f_;
  std::atomic<int64_t> next_{0};
  int64_t done_ = 0;
  std::mutex mutex_;
  std::condition_variable finished_;

  void work() {
    int64_t mine = 0;
    for (int64_t i; (i = next_.fetch_add(1)) < n_; mine++) f_(i);
    if (!mine) return;
    std::lock_guard<std::mutex> lock(mutex_);
    done_ += mine;
    if (done_ == n_) finished_.notify_all();
  }

 public:
  Tasks(int64_t n, std::function<void(int64_t)> f) : n_(n), f_(std::move(f)) {}
  void run(ffi::ThreadPool& pool) {
    const int64_t helpers = std::min(n_, pool.num_threads()) - 1;
    for (int64_t i = 0; i < helpers; i++) pool.Schedule([self = shared_from_this()] { self->work(); });
    work();
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [this] { return done_ == n_; });
  }
};

}  // namespace svae
