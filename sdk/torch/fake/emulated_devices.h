// Emulated ranks with a fake device each: averages meet on the devices' streams, as kernels of a library do.
//
// Each handle is used by the thread that plays its rank, and by autograd's thread for its device.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sdk/torch/emulated_ranks.h"
#include "sdk/torch/fake/fake_device.h"
#include "sdk/torch/fake/on_host.h"

namespace dtrun::torch::testing {

class EmulatedDevices {
 public:
  // A link moves bytes_per_us to and from each rank; 0: at once.
  explicit EmulatedDevices(int size, double bytes_per_us = 0)
      : ranks_(size), size_(size), bytes_per_us_(bytes_per_us) {}
  ~EmulatedDevices() { fake::settle(); }

  // As EmulatedRanks::run; rank r uses device r.
  void run(const std::function<void(int, std::shared_ptr<Collectives>)>& body) {
    ranks_.run([&](int rank, std::shared_ptr<Collectives> host) {
      body(rank, std::make_shared<Handle>(*this, std::move(host)));
    });
  }

 private:
  struct Call {
    std::vector<::torch::Tensor> parts;
    bool done = false;
  };

  // On a stream's thread: returns when all ranks' streams have reached the call.
  void meet(std::uint64_t number, const ::torch::Tensor& part) {
    std::unique_lock lock(mutex_);
    std::shared_ptr<Call>& place = calls_[number];
    if (!place) place = std::make_shared<Call>();
    const std::shared_ptr<Call> call = place;
    call->parts.push_back(part);
    if (static_cast<int>(call->parts.size()) == size_) {
      if (bytes_per_us_ > 0) {
        std::this_thread::sleep_for(
            std::chrono::duration<double, std::micro>(static_cast<double>(part.nbytes()) / bytes_per_us_));
      }
      combine(*call);
      calls_.erase(number);
      call->done = true;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return call->done; });
  }
  void combine(const Call& call) const {
    ::torch::Tensor sum = ::torch::zeros_like(call.parts[0]);
    for (const ::torch::Tensor& part : call.parts) sum.add_(part);
    sum.div_(size_);
    for (const ::torch::Tensor& part : call.parts) part.copy_(sum);
  }

  class Handle final : public Collectives {
   public:
    Handle(EmulatedDevices& devices, std::shared_ptr<Collectives> host)
        : devices_(devices), host_(std::move(host)) {}
    int rank() const override { return host_->rank(); }
    int size() const override { return host_->size(); }
    std::unique_ptr<Pending> average_async(void* data, std::uint64_t count, std::int32_t dtype) override {
      return host_->average_async(data, count, dtype);
    }
    void broadcast(void* data, std::uint64_t bytes, int root) override {
      host_->broadcast(data, bytes, root);
    }
    void allgather(const void* send, void* recv, std::uint64_t bytes) override {
      host_->allgather(send, recv, bytes);
    }
    std::shared_ptr<const dtrun_stream> stream_on(std::int32_t kind, std::int32_t index) override {
      TORCH_CHECK(kind == DTRUN_DEVICE_OTHER, "a fake device is of kind ", DTRUN_DEVICE_OTHER);
      fake::Stream* made = fake::make_stream(index);
      return {new dtrun_stream(stream_of(kind, index, made)), [made](const dtrun_stream* stream) {
                fake::destroy_stream(made);
                delete stream;
              }};
    }
    void average_on(const dtrun_stream& stream, void* data, std::uint64_t count,
                    std::int32_t dtype) override {
      static const std::map<std::int32_t, ::torch::ScalarType> types{{DTRUN_FLOAT32, ::torch::kFloat32},
                                                                     {DTRUN_FLOAT64, ::torch::kFloat64},
                                                                     {DTRUN_BFLOAT16, ::torch::kBFloat16},
                                                                     {DTRUN_FLOAT16, ::torch::kFloat16}};
      const ::torch::Tensor part =
          ::torch::from_blob(data, {static_cast<std::int64_t>(count)}, types.at(dtype));
      static_cast<fake::Stream*>(stream.native)->post([this, part, number = next_++] {
        fake::WithoutGradient([&] { devices_.meet(number, part); });
      });
    }

   private:
    EmulatedDevices& devices_;
    std::shared_ptr<Collectives> host_;
    std::uint64_t next_ = 0;
  };

  EmulatedRanks ranks_;
  int size_;
  double bytes_per_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace dtrun::torch::testing
