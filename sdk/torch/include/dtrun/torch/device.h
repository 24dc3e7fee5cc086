// What torch's devices are called in dtrun, and on which one a module's parameters are. Pure functions; any
// thread.
//
// Nothing here or above needs a vendor's headers: a device is asked through c10's own interfaces, by its
// type.
#pragma once

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dtrun/torch/parameters.h"

namespace dtrun::torch {

// dtrun's number for a type of device; throws for those that it cannot reach. A torch for ROCm says CUDA.
inline std::int32_t kind_of_device(c10::DeviceType type) {
  switch (type) {
    case c10::DeviceType::CPU: return DTRUN_DEVICE_HOST;
    case c10::DeviceType::CUDA:
      return at::detail::getCUDAHooks().hasROCM() ? DTRUN_DEVICE_ROCM : DTRUN_DEVICE_CUDA;
    case c10::DeviceType::HIP: return DTRUN_DEVICE_ROCM;
    case c10::DeviceType::XPU: return DTRUN_DEVICE_LEVEL_ZERO;
    case c10::DeviceType::PrivateUse1: return DTRUN_DEVICE_OTHER;
    default:
      detail::fail(DTRUN_UNSUPPORTED, "dtrun cannot reach the memory of '" + c10::DeviceTypeName(type, true) +
                                          "': move the module to the cpu, cuda, hip, xpu or privateuse1");
  }
}

// The one device of all parameters, which gradients are averaged on. REQUIRES one parameter
inline c10::Device device_of(const std::vector<NamedTensor>& parameters) {
  const NamedTensor& first = parameters.front();
  const c10::Device device = first.tensor.device();
  (void)kind_of_device(device.type());
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.device() == device) continue;
    detail::fail(DTRUN_UNSUPPORTED,
                 "parameter '" + parameter.name + "' is on " + parameter.tensor.device().str() + " and '" +
                     first.name + "' on " + device.str() +
                     ": a rank's parameters are on one device; move the module to one, and "
                     "start a rank for each device");
  }
  return device;
}

}  // namespace dtrun::torch
