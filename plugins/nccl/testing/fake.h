// The plugin over the fake libraries, for tests.
#pragma once

#include <map>
#include <string>

#include "plugins/nccl/testing/fake_control.h"
#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"

namespace dtrun::nccl_test {

// The libraries that the plugin loads; puts back what a test changed when it ends.
class Fake {
 public:
  explicit Fake(std::string nccl_file = FAKE_NCCL_FILE);
  ~Fake();
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  nccl_fake::NcclControl& nccl() const { return *nccl_; }
  nccl_fake::CudaControl& cuda() const { return *cuda_; }
  // `options` beside those that name the libraries.
  conformance::BackendUnderTest Backend(std::map<std::string, std::string> options = {}) const;

 private:
  const std::string nccl_file_;
  nccl_fake::NcclControl* nccl_;
  nccl_fake::CudaControl* cuda_;
};

// The message of the exception with which the plugin refuses to start; fails when it starts.
std::string RefusalOf(const conformance::BackendUnderTest& backend);

}  // namespace dtrun::nccl_test
