#include "fake.h"

#include <dlfcn.h>

#include <stdexcept>
#include <utility>

namespace dtrun::nccl_test {
namespace {

template <class Control>
Control* Find(const std::string& file, const char* name) {
  void* const image = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (image == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<Control* (*)()>(dlsym(image, name))();
}

}  // namespace

Fake::Fake(std::string nccl_file)
    : nccl_file_(std::move(nccl_file)),
      nccl_(Find<nccl_fake::NcclControl>(nccl_file_, "dtrun_fake_nccl")),
      cuda_(Find<nccl_fake::CudaControl>(FAKE_CUDART_FILE, "dtrun_fake_cuda")) {}

Fake::~Fake() {
  nccl_->Reset();
  cuda_->Reset();
}

conformance::BackendUnderTest Fake::Backend(std::map<std::string, std::string> options) const {
  options["library"] = nccl_file_;
  options["cuda_library"] = FAKE_CUDART_FILE;
  return {.plugin = NCCL_PLUGIN_FILE, .options = std::move(options)};
}

std::string RefusalOf(const conformance::BackendUnderTest& backend) {
  try {
    const conformance::Subject subject(backend);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it starts";
}

}  // namespace dtrun::nccl_test
