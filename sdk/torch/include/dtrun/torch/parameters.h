// A module's parameters as the gradient engine sees them. Pure functions; any thread.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dtrun/torch/failure.h"

namespace dtrun::torch {

struct NamedTensor {
  std::string name;
  ::torch::Tensor tensor;
};

// "Float [128, 784]".
inline std::string describe(const ::torch::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.scalar_type() << ' ' << tensor.sizes();
  return out.str();
}

// dtrun's element type for a gradient; throws for types that cannot be averaged.
inline std::int32_t dtype_of_gradient(const NamedTensor& parameter) {
  switch (parameter.tensor.scalar_type()) {
    case ::torch::kFloat32: return DTRUN_FLOAT32;
    case ::torch::kFloat64: return DTRUN_FLOAT64;
    case ::torch::kFloat16: return DTRUN_FLOAT16;
    case ::torch::kBFloat16: return DTRUN_BFLOAT16;
    default:
      detail::fail(DTRUN_UNSUPPORTED, "parameter '" + parameter.name + "' is " + describe(parameter.tensor) +
                                          ": gradients of this type cannot be averaged; use a real " +
                                          "floating point type");
  }
}

// The parameters that get gradients, in order of registration. One that is registered
// under several names comes once, under the first.
inline std::vector<NamedTensor> trainable_parameters(const ::torch::nn::Module& module) {
  std::vector<NamedTensor> found;
  std::unordered_set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const ::torch::Tensor& tensor = item.value();
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    NamedTensor parameter{item.key(), tensor};
    if (!tensor.is_leaf()) {
      detail::fail(DTRUN_INVALID_ARGUMENT,
                   "parameter '" + parameter.name +
                       "' is the result of a computation, not a leaf; register the leaf itself");
    }
    if (tensor.layout() != ::torch::kStrided) {
      detail::fail(DTRUN_UNSUPPORTED,
                   "parameter '" + parameter.name +
                       "' is not dense: gradients of dense parameters can be averaged only; "
                       "use Tensor::to_dense");
    }
    (void)dtype_of_gradient(parameter);
    found.push_back(std::move(parameter));
  }
  return found;
}

// Everything that must be equal on all ranks at the start: all parameters, then buffers.
inline std::vector<NamedTensor> state_of(const ::torch::nn::Module& module) {
  std::vector<NamedTensor> state;
  for (const auto& item : module.named_parameters()) {
    if (item.value().defined()) state.push_back({item.key(), item.value()});
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) state.push_back({item.key(), item.value()});
  }
  return state;
}

// Name, type, shape, strides and whether it is trained, as one line of text.
inline std::string signature(const NamedTensor& entry) {
  std::ostringstream out;
  out << '\'' << entry.name << "' " << describe(entry.tensor);
  if (!entry.tensor.is_contiguous()) out << " strides " << entry.tensor.strides();
  if (!entry.tensor.requires_grad()) out << " without gradient";
  return out.str();
}

}  // namespace dtrun::torch
