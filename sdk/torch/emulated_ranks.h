// Ranks as threads of one process, for tests: Collectives that meet in memory.
//
// EmulatedRanks owns the calls and must outlive what handle() returned. Each
// handle is used by the thread that plays its rank. Sums are made in rank order by the
// last rank to arrive, so results do not depend on timing. A rank that waits longer than
// a minute for the others throws.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "dtrun/torch/collectives.h"

namespace dtrun::torch::testing {

class EmulatedRanks {
 public:
  explicit EmulatedRanks(int size) : size_(size), logs_(static_cast<std::size_t>(size)) {}

  // Element counts of the averages that a rank started, in order.
  const std::vector<std::uint64_t>& averages(int rank) const { return logs_[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Collectives> handle(int rank) { return std::make_shared<Handle>(*this, rank); }

  // Runs `body(rank, its collectives)` on a thread per rank; rethrows the first rank's
  // exception that there is.
  void run(const std::function<void(int, std::shared_ptr<Collectives>)>& body) {
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank, handle(rank));
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  // One operation, by its number in the order of calls.
  struct Call {
    std::vector<const void*> send;
    std::vector<void*> recv;
    int arrived = 0;
    bool done = false;
  };
  using Combine = std::function<void(const Call&)>;

  std::shared_ptr<Call> arrive(std::uint64_t number, int rank, const void* send, void* recv,
                               const Combine& combine) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Call>& call = calls_[number];
    if (!call) {
      call = std::make_shared<Call>();
      call->send.resize(static_cast<std::size_t>(size_));
      call->recv.resize(static_cast<std::size_t>(size_));
    }
    call->send[static_cast<std::size_t>(rank)] = send;
    call->recv[static_cast<std::size_t>(rank)] = recv;
    if (++call->arrived == size_) {
      combine(*call);
      call->done = true;
      changed_.notify_all();
    }
    return call;
  }
  void await(const Call& call) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [&] { return call.done; })) {
      throw std::runtime_error("the other emulated ranks did not make this call within a minute");
    }
  }

  class Handle final : public Collectives {
   public:
    Handle(EmulatedRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return ranks_.size_; }

    std::unique_ptr<Pending> average_async(void* data, std::uint64_t count, std::int32_t dtype) override {
      ranks_.logs_[static_cast<std::size_t>(rank_)].push_back(count);
      auto call = ranks_.arrive(next_++, rank_, data, data, [&](const Call& m) {
        if (dtype == DTRUN_FLOAT32) return average<float>(m, count);
        if (dtype == DTRUN_FLOAT64) return average<double>(m, count);
        throw std::logic_error("emulated ranks average float32 and float64 only");
      });
      return std::make_unique<Waiter>(ranks_, std::move(call));
    }
    void broadcast(void* data, std::uint64_t bytes, int root) override {
      ranks_.await(*ranks_.arrive(next_++, rank_, data, data, [&](const Call& m) {
        for (void* recv : m.recv) std::memmove(recv, m.send[static_cast<std::size_t>(root)], bytes);
      }));
    }
    void allgather(const void* send, void* recv, std::uint64_t bytes) override {
      ranks_.await(*ranks_.arrive(next_++, rank_, send, recv, [&](const Call& m) {
        for (void* to : m.recv) {
          for (std::size_t r = 0; r < m.send.size(); ++r) {
            std::memcpy(static_cast<char*>(to) + r * bytes, m.send[r], bytes);
          }
        }
      }));
    }

   private:
    class Waiter final : public Pending {
     public:
      Waiter(EmulatedRanks& ranks, std::shared_ptr<Call> call) : ranks_(ranks), call_(std::move(call)) {}
      void wait() override { ranks_.await(*call_); }

     private:
      EmulatedRanks& ranks_;
      std::shared_ptr<Call> call_;
    };

    template <class T>
    static void average(const Call& call, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) {
        T sum = 0;
        for (void* part : call.recv) sum += static_cast<T*>(part)[i];
        for (void* part : call.recv) static_cast<T*>(part)[i] = sum / static_cast<T>(call.recv.size());
      }
    }

    EmulatedRanks& ranks_;
    int rank_;
    std::uint64_t next_ = 0;
  };

  int size_;
  std::vector<std::vector<std::uint64_t>> logs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace dtrun::torch::testing
