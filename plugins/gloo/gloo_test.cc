// The gloo plugin: everything a backend must do is inherited; what is its own stands here.
#include "sdk/conformance/backend_suite.h"

namespace dtrun::conformance {
namespace {

const bool kRegistered = RegisterBackendSuite({.plugin = GLOO_PLUGIN_FILE});

}  // namespace
}  // namespace dtrun::conformance
