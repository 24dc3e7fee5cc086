// A fake device's tensors as the host's, for the threads of its streams. Any thread.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/types.h>

namespace dtrun::fake {

// The same memory, which is not kept alive: as on a device, the order of streams has to.
inline ::torch::Tensor OnHost(const ::torch::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(at::kCPU).dtype(tensor.dtype()));
}

// Runs `body` below autograd, on one thread.
template <class Body>
void WithoutGradient(Body&& body) {
  thread_local const bool alone = (at::set_num_threads(1), true);
  (void)alone;
  const at::NoGradGuard no_gradient;
  const at::AutoDispatchBelowADInplaceOrView below;
  body();
}

}  // namespace dtrun::fake
