// The engine behind a plugin's entry point, for the conformance suite.
#include "core/comm/shm/backend.h"

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(dtrun::shm::EnginePlugin(), host, out, err);
}
