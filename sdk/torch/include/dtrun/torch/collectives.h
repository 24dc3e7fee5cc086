// What the torch layer needs from the ranks: five calls on host memory and two on a device's, behind an
// interface so that several ranks can be emulated in one process.
//
// All ranks make the same calls in the same order. Calls come from one thread at a time: the one that
// constructs DataParallel or runs backward, or, with a device, autograd's thread for it. Failures are
// exceptions, and nothing may be called after one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/torch/failure.h"

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
  // Zeroed memory, 64-byte aligned, for what is averaged again and again.
  virtual std::shared_ptr<void> allocate(std::uint64_t bytes) {
    constexpr std::uint64_t kAlignment = 64;
    const std::uint64_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
    std::shared_ptr<void> memory(std::aligned_alloc(kAlignment, rounded), std::free);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory.get(), 0, rounded);
    return memory;
  }
  // Connects the ranks on their devices of this kind, this one on device `index`, and makes the stream that
  // average_on is called with; it ends when its work has.
  virtual std::shared_ptr<const dtrun_stream> stream_on(std::int32_t kind, std::int32_t index) {
    detail::fail(DTRUN_UNSUPPORTED, "these ranks average host memory only, not that of device " +
                                        std::to_string(index) + " of kind " + std::to_string(kind));
  }
  // Replaces `data` by its mean over all ranks when what is queued on `stream` has ended. Does not wait, and
  // reports a failure at a later call. The buffer belongs to the operation until averaged_on returns.
  virtual void average_on(const dtrun_stream& stream, void* data, std::uint64_t count, std::int32_t dtype) {
    (void)stream, (void)data, (void)count, (void)dtype;
    detail::fail(DTRUN_UNSUPPORTED, "these ranks average host memory only");
  }
  // Later work on `stream` sees the results of all averages that were started. Waits where their route can
  // only order a stream then (docs/devices.md).
  virtual void averaged_on(const dtrun_stream& stream) { (void)stream; }
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
  // Where the transport moves it fastest: every rank of the host reads and writes it in place.
  std::shared_ptr<void> allocate(std::uint64_t bytes) override {
    void* memory = nullptr;
    dtrun::detail::check([&](dtrun_error* e) { return dtrun_alloc(comm_.get(), bytes, &memory, e); });
    // The end of the Session has freed it already.
    return std::shared_ptr<void>(memory, [comm = comm_.get()](void* made) {
      if (dtrun_is_initialized() != 0) dtrun_free(comm, made);
    });
  }
  std::shared_ptr<const dtrun_stream> stream_on(std::int32_t kind, std::int32_t index) override {
    comm_.connect(kind, index);
    constexpr int kBeforeOthers = 1;  // what is averaged early hides behind more of backward
    dtrun_stream made;
    DTRUN_INIT(made);
    dtrun::detail::check([&](dtrun_error* e) {
      return dtrun_stream_create(comm_.get(), kind, index, kBeforeOthers, &made, e);
    });
    return {new dtrun_stream(made), [comm = comm_.get()](const dtrun_stream* stream) {
              if (dtrun_is_initialized() != 0) dtrun_stream_destroy(comm, stream);
              delete stream;
            }};
  }
  void average_on(const dtrun_stream& stream, void* data, std::uint64_t count, std::int32_t dtype) override {
    averages_.push_back(comm_.on(stream).allreduce_async(data, count, dtype, Reduce::avg));
  }
  void averaged_on(const dtrun_stream& stream) override {
    for (Work& average : std::exchange(averages_, {})) average.wait_on(stream);
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
  std::vector<Work> averages_;  // that no stream was ordered after yet
};

}  // namespace dtrun::torch
