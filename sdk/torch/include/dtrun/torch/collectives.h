// What the torch layer needs from the ranks: four calls, behind an interface so that
// several ranks can be emulated in one process.
//
// All ranks make the same calls in the same order. Calls come from one thread at a time:
// the one that constructs DataParallel or runs backward. Failures are exceptions, and
// nothing may be called after one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "dtrun/dtrun.hpp"

namespace dtrun::torch {

// An operation under way. Destroying it waits for its end.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Replaces `data` by its mean over all ranks. The buffer belongs to the operation until
  // wait returns or the Pending is destroyed. `dtype` is one of dtrun's.
  virtual std::unique_ptr<Pending> average_async(void* data, std::uint64_t count, std::int32_t dtype) = 0;
  virtual void broadcast(void* data, std::uint64_t bytes, int root) = 0;
  // `recv` has size() * bytes; rank r's part is at r * bytes.
  virtual void allgather(const void* send, void* recv, std::uint64_t bytes) = 0;
};

// The real ones. Valid until the Session that made the communicator ends.
class CommunicatorCollectives final : public Collectives {
 public:
  explicit CommunicatorCollectives(Communicator comm) : comm_(comm) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::unique_ptr<Pending> average_async(void* data, std::uint64_t count, std::int32_t dtype) override {
    return std::make_unique<Running>(comm_.allreduce_async(data, count, dtype, Reduce::avg));
  }
  void broadcast(void* data, std::uint64_t bytes, int root) override {
    comm_.broadcast(static_cast<std::uint8_t*>(data), bytes, root);
  }
  void allgather(const void* send, void* recv, std::uint64_t bytes) override {
    comm_.allgather(static_cast<const std::uint8_t*>(send), static_cast<std::uint8_t*>(recv), bytes);
  }

 private:
  class Running final : public Pending {
   public:
    explicit Running(Work work) : work_(std::move(work)) {}
    void wait() override { work_.wait(); }

   private:
    Work work_;
  };

  Communicator comm_;
};

}  // namespace dtrun::torch
