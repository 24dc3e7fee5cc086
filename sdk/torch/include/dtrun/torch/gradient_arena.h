// One flat buffer per element type that holds every gradient, so that reducing them
// copies nothing: each parameter's .grad is a tensor over its own slice.
//
// The slices are made with set_ and are no views in autograd's sense, so
// torch::optim::Optimizer::zero_grad(), which detaches in place and throws on views, works
// on them. What the user or an optimizer replaces or drops, adopt() takes back.
//
// The buffers may come from the communicator and end with it, so the destructor gives every
// gradient memory of its own again. Owned by the gradient engine; one thread at a time. On a
// device everything here is queued on the calling thread's current stream.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "dtrun/torch/parameters.h"

namespace dtrun::torch {

class GradientArena {
 public:
  // Slices lie in the order of `parameters`, each element type in a buffer of its own.
  // `make` returns zeros. Gradients that exist are taken over, the others are zero.
  GradientArena(const std::vector<NamedTensor>& parameters,
                const std::function<::torch::Tensor(::torch::ScalarType, std::int64_t count)>& make) {
    ::torch::NoGradGuard no_grad;
    std::map<::torch::ScalarType, std::int64_t> totals;
    for (const NamedTensor& parameter : parameters) {
      totals[parameter.tensor.scalar_type()] += parameter.tensor.numel();
    }
    std::map<::torch::ScalarType, std::size_t> index;
    for (const auto& [type, total] : totals) {
      index[type] = flats_.size();
      flats_.push_back(make(type, total));
    }
    std::map<::torch::ScalarType, std::int64_t> used;
    for (const NamedTensor& parameter : parameters) {
      const ::torch::Tensor& tensor = parameter.tensor;
      const ::torch::Tensor& flat = flats_[index[tensor.scalar_type()]];
      std::int64_t& offset = used[tensor.scalar_type()];
      ::torch::Tensor slice = ::torch::empty({0}, flat.options());
      // Same strides as the parameter where they are dense, which is what autograd makes.
      if (tensor.is_non_overlapping_and_dense()) {
        slice.set_(flat.storage(), offset, tensor.sizes(), tensor.strides());
      } else {
        slice.set_(flat.storage(), offset, tensor.sizes(), ::torch::empty_like(tensor).strides());
      }
      offset += tensor.numel();
      slots_.push_back({parameter, std::move(slice)});
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) adopt(i);
  }

  ~GradientArena() {
    ::torch::NoGradGuard no_grad;
    for (Slot& slot : slots_) {
      ::torch::Tensor& gradient = slot.parameter.tensor.mutable_grad();
      if (!gradient.is_same(slot.slice)) continue;
      try {
        gradient = slot.slice.clone();
      } catch (const std::exception&) {
        gradient = ::torch::Tensor();  // no memory for it: better none than one that dangles
      }
    }
  }
  GradientArena(const GradientArena&) = delete;
  GradientArena& operator=(const GradientArena&) = delete;

  std::size_t size() const { return slots_.size(); }
  const NamedTensor& parameter(std::size_t i) const { return slots_[i].parameter; }
  void* data(std::size_t i) const { return slots_[i].slice.data_ptr(); }
  std::uint64_t bytes(std::size_t i) const { return static_cast<std::uint64_t>(slots_[i].slice.nbytes()); }

  // Makes .grad of parameter i its slice, keeping the value: a gradient elsewhere is
  // copied in, a missing one is zero.
  void adopt(std::size_t i) {
    ::torch::NoGradGuard no_grad;
    Slot& slot = slots_[i];
    ::torch::Tensor& gradient = slot.parameter.tensor.mutable_grad();
    if (gradient.is_same(slot.slice)) return;
    if (!gradient.defined()) {
      slot.slice.zero_();
    } else if (gradient.layout() != ::torch::kStrided) {
      detail::fail(DTRUN_UNSUPPORTED, "the gradient of parameter '" + slot.parameter.name +
                                          "' is sparse; only dense gradients can be averaged");
    } else if (gradient.data_ptr() != slot.slice.data_ptr()) {
      slot.slice.copy_(gradient);
    }
    gradient = slot.slice;
  }

  // All gradients become zero and lie in the arena.
  void zero() {
    ::torch::NoGradGuard no_grad;
    for (::torch::Tensor& flat : flats_) flat.zero_();
    for (Slot& slot : slots_) slot.parameter.tensor.mutable_grad() = slot.slice;
  }

 private:
  struct Slot {
    NamedTensor parameter;
    ::torch::Tensor slice;
  };
  std::vector<::torch::Tensor> flats_;
  std::vector<Slot> slots_;
};

}  // namespace dtrun::torch
