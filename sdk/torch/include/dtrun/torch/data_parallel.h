// Data-parallel training of a libtorch module: the one class a training program needs.
//
//   dtrun::Session session;
//   Net model;                                            // the same on every rank
//   dtrun::torch::DataParallel dp(*model, session.world());
//   torch::optim::SGD optimizer(model->parameters(), 0.1);
//   for (...) {                                           // each rank its own samples
//     dp.zero_grad();
//     loss(model->forward(x), y).backward();              // returns with averaged gradients
//     optimizer.step();
//   }
//
// Construction is collective: it checks that all ranks built the same module, then copies
// rank 0's parameters and buffers to all. From then on the module is used as always; the
// work happens in backward (see engine.h for what is refused). Parameters added, moved or
// converted afterwards are not seen. In a world of one nothing is hooked or allocated.
//
// The parameters are on one device of any kind, of the same kind on all ranks; gradients are
// averaged there (device_exchange.h). What is compared or copied at the start, and buffers,
// go through host memory.
//
// The module must outlive the object. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/torch/engine.h"
#include "dtrun/torch/same_model.h"

namespace dtrun::torch {

class DataParallel {
 public:
  DataParallel(::torch::nn::Module& module, Communicator comm, const EngineOptions& options = {})
      : DataParallel(module, std::make_shared<CommunicatorCollectives>(comm), options) {}

  DataParallel(::torch::nn::Module& module, std::shared_ptr<Collectives> ranks,
               const EngineOptions& options = {})
      : module_(module), ranks_(std::move(ranks)), parameters_(trainable_parameters(module)) {
    if (parameters_.empty()) {
      detail::fail(DTRUN_INVALID_ARGUMENT,
                   "the module has no parameter that requires a gradient; register its submodules first");
    }
    const c10::Device device = device_of(parameters_);
    if (ranks_->size() == 1) return;
    const std::vector<NamedTensor> state = state_of(module);
    std::vector<std::string> parts{"parameters on " + c10::DeviceTypeName(device.type(), true)};
    for (const NamedTensor& entry : state) parts.push_back(signature(entry));
    parts.push_back("buckets of " + std::to_string(options.first_bucket_bytes) + " and " +
                    std::to_string(options.bucket_bytes) + " bytes");
    detail::check_same_model(*ranks_, parts);
    broadcast(state);
    engine_ = std::make_unique<Engine>(parameters_, ranks_, options);
  }

  // Call this rather than the optimizer's own: it clears all gradients with one write per
  // element type and leaves them where they are reduced. After the optimizer's (or
  // anything else that replaces a gradient) each one costs a copy in the next backward.
  // In a world of one it drops the gradients.
  void zero_grad() {
    if (engine_) {
      engine_->zero_grad();
      return;
    }
    for (NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad() = ::torch::Tensor();
  }

  // While it lives, backward accumulates on this rank only; the first backward after it
  // reduces the sum. On all ranks alike.
  class [[nodiscard]] NoSync {
   public:
    ~NoSync() {
      if (engine_ != nullptr) engine_->set_sync(before_);
    }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    friend class DataParallel;
    explicit NoSync(Engine* engine) : engine_(engine), before_(engine == nullptr || engine->sync()) {
      if (engine_ != nullptr) engine_->set_sync(false);
    }
    Engine* engine_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(engine_.get()); }

  // Rank 0's buffers (running means and the like) to all ranks. Collective; waits for the device.
  void broadcast_buffers() {
    if (ranks_->size() == 1) return;
    std::vector<NamedTensor> buffers;
    for (const auto& item : module_.named_buffers()) {
      if (item.value().defined()) buffers.push_back({item.key(), item.value()});
    }
    broadcast(buffers);
  }

  // Null in a world of one.
  const Engine* engine() const { return engine_.get(); }

 private:
  void broadcast(const std::vector<NamedTensor>& tensors) {
    ::torch::NoGradGuard no_grad;
    for (const NamedTensor& entry : tensors) {
      ::torch::Tensor data = entry.tensor.detach();
      ::torch::Tensor dense = data.to(::torch::kCPU).contiguous();
      if (dense.numel() == 0) continue;
      ranks_->broadcast(dense.data_ptr(), static_cast<std::uint64_t>(dense.nbytes()), 0);
      if (!dense.is_same(data)) data.copy_(dense);
    }
  }

  ::torch::nn::Module& module_;
  std::shared_ptr<Collectives> ranks_;
  std::vector<NamedTensor> parameters_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace dtrun::torch
