// Averages gradients over the ranks while backward still computes the earlier ones.
//
// Parameters are cut into buckets in reverse order of registration, roughly the order in
// which backward reaches them. A hook on each parameter's gradient accumulator counts its
// bucket down; a full bucket starts its allreduce on the arena itself as soon as all
// earlier buckets have started, so every rank starts them in the same order whatever
// order its gradients came in. The first hook of a backward queues a callback at the end
// of it, which reduces what is left (parameters that got no gradient count as zero) and
// waits: when backward() returns, every .grad holds the mean over all ranks. On a device
// it does not wait: every .grad holds the mean for what the caller's current stream does
// next (device_exchange.h).
//
// Every rank runs the same number of backward passes that reach at least one parameter.
// A backward inside a backward is counted as a pass or part of one; it is refused where
// one parameter would get two gradients in one pass, and so is create_graph. After an
// exception during backward the ranks may differ, and the engine refuses to go on.
//
// Owned by DataParallel; not movable, because hooks hold its address. One thread at a
// time: the one that calls backward(), or, with a device, autograd's thread for it.
#pragma once

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/torch/device_exchange.h"
#include "dtrun/torch/exchange.h"
#include "dtrun/torch/gradient_arena.h"

namespace dtrun::torch {

struct EngineOptions {
  // A bucket closes when it has reached its size. The first is small, so that the
  // exchange begins early. Equal on all ranks.
  std::uint64_t first_bucket_bytes = std::uint64_t{1} << 20;
  std::uint64_t bucket_bytes = std::uint64_t{25} << 20;
};

// What an engine has done since it was made.
struct EngineStats {
  std::uint64_t passes = 0;  // backward passes with reduced gradients
  std::uint64_t early = 0;   // buckets started while backward was running
  std::uint64_t late = 0;    // buckets started at its end, because a gradient was missing
};

class Engine {
 public:
  // `parameters` in order of registration, from trainable_parameters, all on one device.
  Engine(const std::vector<NamedTensor>& parameters, std::shared_ptr<Collectives> ranks,
         const EngineOptions& options)
      : exchange_(make_exchange(device_of(parameters), std::move(ranks))),
        arena_(reversed(parameters), [this](::torch::ScalarType type,
                                            std::int64_t count) { return exchange_->buffer(type, count); }),
        fired_(arena_.size()),
        bucket_of_(arena_.size()) {
    make_buckets(options);
    hook_accumulators();
  }
  ~Engine() {
    for (const Hook& hook : hooks_) hook.accumulator->del_post_hook(hook.key);
    exchange_->end();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void zero_grad() { arena_.zero(); }
  // Off: backward only accumulates on this rank. The next pass with it on reduces all.
  void set_sync(bool sync) { sync_ = sync; }
  bool sync() const { return sync_; }

  std::size_t buckets() const { return buckets_.size(); }
  const EngineStats& stats() const { return stats_; }

 private:
  struct Bucket {
    std::int32_t dtype = 0;
    void* data = nullptr;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::vector<std::size_t> members;  // indices into the arena
    std::size_t missing = 0;           // members without a gradient in this pass
  };
  // A shared or an intrusive pointer, depending on libtorch's version.
  using Accumulator =
      decltype(::torch::autograd::impl::grad_accumulator(std::declval<const ::torch::Tensor&>()));
  struct Hook {
    Accumulator accumulator;  // its tensor holds it weakly
    std::uintptr_t key;
  };
  struct Pass {};  // lives as long as the autograd engine keeps this pass's callback

  static std::unique_ptr<Exchange> make_exchange(c10::Device device, std::shared_ptr<Collectives> ranks) {
    if (device.is_cpu()) return std::make_unique<HostExchange>(std::move(ranks));
    return std::make_unique<DeviceExchange>(std::move(ranks), device);
  }
  static std::vector<NamedTensor> reversed(std::vector<NamedTensor> parameters) {
    std::reverse(parameters.begin(), parameters.end());
    return parameters;
  }

  // Buckets are in order of their first member, each within one element type.
  void make_buckets(const EngineOptions& options) {
    std::vector<std::pair<std::int32_t, std::size_t>> open;  // element type, bucket that still takes members
    for (std::size_t i = 0; i < arena_.size(); ++i) {
      const std::int32_t dtype = dtype_of_gradient(arena_.parameter(i));
      auto place = std::find_if(open.begin(), open.end(), [&](const auto& o) { return o.first == dtype; });
      if (place == open.end()) {
        open.emplace_back(dtype, buckets_.size());
        place = open.end() - 1;
        Bucket bucket;
        bucket.dtype = dtype;
        bucket.data = arena_.data(i);
        buckets_.push_back(std::move(bucket));
      }
      const std::size_t index = place->second;
      Bucket& bucket = buckets_[index];
      bucket.members.push_back(i);
      bucket.bytes += arena_.bytes(i);
      bucket.count += static_cast<std::uint64_t>(arena_.parameter(i).tensor.numel());
      bucket_of_[i] = index;
      if (bucket.bytes >= (index == 0 ? options.first_bucket_bytes : options.bucket_bytes)) open.erase(place);
    }
  }

  void hook_accumulators() {
    for (std::size_t i = 0; i < arena_.size(); ++i) {
      auto accumulator = ::torch::autograd::impl::grad_accumulator(arena_.parameter(i).tensor);
      const std::uintptr_t key =
          accumulator->add_post_hook(std::make_unique<::torch::autograd::utils::LambdaPostHook>(
              [this, i](const ::torch::autograd::variable_list& outputs,
                        const ::torch::autograd::variable_list& /*inputs*/) {
                on_gradient(i);
                return outputs;
              }));
      hooks_.push_back({std::move(accumulator), key});
    }
  }

  void on_gradient(std::size_t i) {
    if (::torch::GradMode::is_enabled()) {
      detail::fail(DTRUN_UNSUPPORTED,
                   "backward with create_graph=true reached parameter '" + arena_.parameter(i).name +
                       "': its gradient cannot be averaged in place; use torch::autograd::grad for the " +
                       "inner derivative");
    }
    if (!sync_) return;
    if (pass_.expired()) begin_pass();
    if (fired_[i]) {
      detail::fail(DTRUN_UNSUPPORTED,
                   "parameter '" + arena_.parameter(i).name +
                       "' got a second gradient in one backward pass (a backward inside a backward); run " +
                       "the inner one under no_sync()");
    }
    fired_[i] = true;
    arena_.adopt(i);
    exchange_->wrote();
    if (--buckets_[bucket_of_[i]].missing == 0) {
      while (next_ < buckets_.size() && buckets_[next_].missing == 0) launch(stats_.early);
    }
  }

  void begin_pass() {
    if (running_) {
      detail::fail(DTRUN_FAILED_PRECONDITION,
                   "the previous backward pass ended with an exception, so the ranks may hold different "
                   "gradients; stop, or make a new DataParallel on every rank");
    }
    auto pass = std::make_shared<Pass>();
    ::torch::autograd::Engine::get_default_engine().queue_callback([this, pass] { finish_pass(); });
    pass_ = pass;
    running_ = true;
    next_ = 0;
    exchange_->begin();
    std::fill(fired_.begin(), fired_.end(), false);
    for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
  }

  void finish_pass() {
    for (std::size_t i = 0; i < arena_.size(); ++i) {
      if (!fired_[i]) arena_.adopt(i);
    }
    exchange_->wrote();
    while (next_ < buckets_.size()) launch(stats_.late);
    exchange_->finish();
    pass_.reset();
    running_ = false;
    ++stats_.passes;
  }

  void launch(std::uint64_t& counter) {
    const Bucket& bucket = buckets_[next_];
    if (bucket.count > 0) exchange_->start(bucket.data, bucket.count, bucket.dtype);
    ++next_;
    ++counter;
  }

  std::unique_ptr<Exchange> exchange_;
  GradientArena arena_;
  std::vector<bool> fired_;
  std::vector<std::size_t> bucket_of_;
  std::vector<Bucket> buckets_;
  std::vector<Hook> hooks_;
  EngineStats stats_;

  bool sync_ = true;
  bool running_ = false;  // a pass has begun and not finished
  std::weak_ptr<Pass> pass_;
  std::size_t next_ = 0;  // first bucket that has not been started
};

}  // namespace dtrun::torch
