// Everything that a device plugin must do is inherited.
#include "fake.h"
#include "sdk/conformance/backend_suite.h"

namespace dtrun::cuda_test {
namespace {

const bool kPrepared = (Fake::Prepare(Fake::Load()), true);
const bool kRegistered = conformance::RegisterDeviceSuite({.plugin = CUDA_PLUGIN_FILE});

}  // namespace
}  // namespace dtrun::cuda_test
