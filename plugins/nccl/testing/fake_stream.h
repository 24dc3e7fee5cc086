// A stream of the fake CUDA runtime: a thread that runs what it is given, in order, after a delay that a test
// may ask for. While it is captured it records instead, what a graph then runs again and again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fake_control.h"

namespace dtrun::nccl_fake {

class FakeStream {
 public:
  using Task = std::function<void()>;
  // Makes the task of one run, when that is started: once, or at each launch of a graph.
  using Maker = std::function<Task()>;

  // Without delays.
  FakeStream() : FakeStream(None(), 0, 0) {}
  // `number`: of all streams of the process, in the order in which they were made.
  FakeStream(const CudaControl& control, int of_device, std::uint64_t number)
      : device(of_device), control_(control), number_(number), thread_([this] { Run(); }) {}
  // Runs its work in the queue of `shared`, which stays.
  explicit FakeStream(FakeStream& shared)
      : device(shared.device), control_(shared.control_), number_(shared.number_), queue_(&shared) {}
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  // Runs what is left.
  ~FakeStream() {
    if (!thread_.joinable()) return;  // it is the thread that ends
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Post(Task task) {
    PostMade([task = std::move(task)] { return task; });
  }
  void PostMade(const Maker& make) {
    {
      const std::lock_guard lock(mutex_);
      if (recording_ != nullptr) {
        recording_->push_back(make);
        return;
      }
    }
    PostNow(make());
  }
  // Also while the stream is captured.
  void PostNow(Task task) {
    if (queue_ != nullptr) return queue_->PostNow(std::move(task));
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }

  // What is posted goes to `into` until this is called with null.
  void Record(std::vector<Maker>* into) {
    const std::lock_guard lock(mutex_);
    recording_ = into;
  }

  // Instead of deleting it: it runs what is left and then deletes itself.
  void Retire() {
    if (queue_ != nullptr) return delete this;
    thread_.detach();
    const std::lock_guard lock(mutex_);
    stop_ = retired_ = true;
    changed_.notify_all();
  }

  const int device;

 private:
  static const CudaControl& None() {
    static const CudaControl none;
    return none;
  }

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) break;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      Delay();
      task();
      lock.lock();
    }
    const bool retired = retired_;
    lock.unlock();
    if (retired) delete this;
  }

  void Delay() {
    const int most = control_.delay_us;
    if (most <= 0) return;
    const std::uint64_t seed = control_.delay_seed;
    if (seed != seed_ || !seeded_) {
      random_.seed(seed * 1'000'003 + number_);
      seed_ = seed;
      seeded_ = true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<std::uint64_t>(most)));
  }

  const CudaControl& control_;
  const std::uint64_t number_;
  FakeStream* const queue_ = nullptr;  // null: its own
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<Maker>* recording_ = nullptr;
  bool stop_ = false;
  bool retired_ = false;
  std::mt19937_64 random_;  // the thread's own, as the two that follow
  std::uint64_t seed_ = 0;
  bool seeded_ = false;
  std::thread thread_;
};

}  // namespace dtrun::nccl_fake

// Runs `*task`, a std::function<void()> that is copied, on `stream`; null is the default stream of the
// calling thread's device.
extern "C" void dtrun_fake_run(void* stream, const void* task);
// The same with a Maker, for what is not the same at each run of a graph.
extern "C" void dtrun_fake_make(void* stream, const void* maker);
