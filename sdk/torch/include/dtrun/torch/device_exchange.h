// Averages the buckets of a device on a stream of their own, beside backward. The host waits for nothing, or,
// where the averages are staged, for them at the end of backward.
//
// The order, all by events: the stream of the averages follows every stream that has written gradients in
// this pass; at the end of backward the caller's current stream, where the optimizer runs, follows the
// averages. torch 1.13's autograd runs each operation on the stream of its forward for CUDA only; other
// devices' backward is on their default stream there.
//
// c10 takes the native handle as a stream's number, for streams that it has not made: a pointer with its low
// bits clear. So do CUDA, ROCm and XPU; a device of type PrivateUse1 has to, for its streams to be used
// here.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "dtrun/torch/device.h"
#include "dtrun/torch/exchange.h"

namespace dtrun::torch {

class DeviceExchange final : public Exchange {
 public:
  // Collective: connects the ranks on their devices.
  DeviceExchange(std::shared_ptr<Collectives> ranks, c10::Device device)
      : ranks_(std::move(ranks)),
        device_(device),
        guard_(device.type()),
        native_(ranks_->stream_on(kind_of_device(device.type()), device.index())),
        averages_(c10::Stream::UNSAFE, device, reinterpret_cast<std::intptr_t>(native_->native)),
        home_(guard_.getStream(device)),
        mark_(device.type()) {}

  ::torch::Tensor buffer(::torch::ScalarType type, std::int64_t count) override {
    buffers_.push_back(::torch::zeros({count}, ::torch::TensorOptions(device_).dtype(type)));
    return buffers_.back();
  }
  void begin() override { writers_.clear(); }
  void wrote() override {
    const c10::Stream current = guard_.getStream(device_);
    if (std::find(writers_.begin(), writers_.end(), current) != writers_.end()) return;
    writers_.push_back(current);
    used_on(current);
  }
  void start(void* data, std::uint64_t count, std::int32_t dtype) override {
    for (const c10::Stream& writer : writers_) follow(averages_, writer);
    ranks_->average_on(*native_, data, count, dtype);
  }
  void finish() override {
    const c10::Stream current = guard_.getStream(device_);
    ranks_->averaged_on(*native_);
    follow(current, averages_);
    used_on(current);
  }
  // The averages' stream may end before the memory does, so the allocator is not told of it: the stream that
  // the memory was allocated for follows it.
  void end() noexcept override {
    try {
      const c10::Stream current = guard_.getStream(device_);
      ranks_->averaged_on(*native_);
      follow(current, averages_);
      follow(home_, averages_);
      used_on(current);
    } catch (const std::exception&) {  // the device has failed, and frees nothing any more
    }
    buffers_.clear();
  }

 private:
  void follow(const c10::Stream& later, const c10::Stream& earlier) {
    if (later == earlier) return;
    mark_.record(earlier);
    mark_.block(later);
  }
  // The allocator gives the buffers to others only when the stream's work up to then has ended.
  void used_on(const c10::Stream& stream) {
    if (stream == home_ || std::find(users_.begin(), users_.end(), stream) != users_.end()) return;
    users_.push_back(stream);
    for (const ::torch::Tensor& buffer : buffers_) {
      guard_.recordDataPtrOnStream(buffer.storage().data_ptr(), stream);
    }
  }

  std::shared_ptr<Collectives> ranks_;
  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  std::shared_ptr<const dtrun_stream> native_;
  c10::Stream averages_;
  c10::Stream home_;  // that the buffers are allocated for
  c10::Event mark_;   // recorded again and again: who waits for an earlier place goes on doing so
  std::vector<::torch::Tensor> buffers_;
  std::vector<c10::Stream> writers_, users_;
};

}  // namespace dtrun::torch
