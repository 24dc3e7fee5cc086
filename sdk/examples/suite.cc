// The conformance suite over a plugin that was built elsewhere: DTRUN_SUITE_PLUGIN is its file.
#include <cstdlib>

#include "sdk/conformance/backend_suite.h"

namespace dtrun::conformance {
namespace {

const char* Plugin() {
  const char* const file = std::getenv("DTRUN_SUITE_PLUGIN");
  return file == nullptr ? "" : file;
}

const bool kRegistered = RegisterBackendSuite({.plugin = Plugin()});

}  // namespace
}  // namespace dtrun::conformance
