// The shared-memory engine: everything a backend must do is inherited.
#include "sdk/conformance/backend_suite.h"

namespace dtrun::conformance {
namespace {

const bool kRegistered = RegisterBackendSuite({.plugin = SHM_PLUGIN_FILE});

}  // namespace
}  // namespace dtrun::conformance
