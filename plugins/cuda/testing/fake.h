// The fake CUDA libraries, found by the plugin because they are in the process before it.
#pragma once

#include <dlfcn.h>

#include <stdexcept>

#include "plugins/nccl/testing/fake_control.h"

namespace dtrun::cuda_test {

// Loads both libraries; two devices that know their memory. Puts back what a test changed when it ends.
class Fake {
 public:
  Fake() : control_(Load()) { Prepare(control_); }
  ~Fake() {
    control_.Reset();
    Prepare(control_);
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  nccl_fake::CudaControl* operator->() const { return &control_; }

  // As every test finds it.
  static void Prepare(nccl_fake::CudaControl& control) {
    control.device_count = 2;
    control.knows_memory = true;
  }
  static nccl_fake::CudaControl& Load() {
    void* image = nullptr;
    for (const char* const file : {FAKE_CUDART_FILE, FAKE_DRIVER_FILE}) {
      void* const opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      if (opened == nullptr) throw std::runtime_error(dlerror());
      if (image == nullptr) image = opened;
    }
    return *reinterpret_cast<nccl_fake::CudaControl* (*)()>(dlsym(image, "dtrun_fake_cuda"))();
  }

 private:
  nccl_fake::CudaControl& control_;
};

}  // namespace dtrun::cuda_test
