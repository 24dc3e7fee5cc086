// How the gradient engine's buckets are averaged: what differs between memory of the host and of a device.
//
// Owned by the gradient engine, which calls it from one thread at a time: the one that runs backward, or, for
// a device, the thread that autograd keeps for it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dtrun/torch/collectives.h"

namespace dtrun::torch {

class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  // Zeroed memory that start() averages parts of.
  virtual ::torch::Tensor buffer(::torch::ScalarType type, std::int64_t count) = 0;
  // A backward pass begins.
  virtual void begin() {}
  // The calling thread has written, or queued the writing of, a gradient into a buffer.
  virtual void wrote() {}
  // Averages part of a buffer, when everything is written that was before. Does not wait.
  virtual void start(void* data, std::uint64_t count, std::int32_t dtype) = 0;
  // What the calling thread does next, or queues, sees the averages of this pass.
  virtual void finish() = 0;
  // Nothing may touch the buffers any more, nor start; they may be freed in the order of the calling thread's
  // work.
  virtual void end() noexcept = 0;
};

// Memory of the host: waits in finish.
class HostExchange final : public Exchange {
 public:
  explicit HostExchange(std::shared_ptr<Collectives> ranks) : ranks_(std::move(ranks)) {}

  ::torch::Tensor buffer(::torch::ScalarType type, std::int64_t count) override {
    const std::shared_ptr<void> memory =
        ranks_->allocate(static_cast<std::uint64_t>(count) * c10::elementSize(type));
    return ::torch::from_blob(
        memory.get(), {count}, [memory](void*) {}, type);
  }
  void start(void* data, std::uint64_t count, std::int32_t dtype) override {
    pending_.push_back(ranks_->average_async(data, count, dtype));
  }
  void finish() override {
    for (const auto& pending : pending_) pending->wait();
    pending_.clear();
  }
  void end() noexcept override { pending_.clear(); }

 private:
  std::shared_ptr<Collectives> ranks_;
  std::vector<std::unique_ptr<Pending>> pending_;
};

}  // namespace dtrun::torch
