// The larger services behind the host table. Constant tables; any thread.
#pragma once

#include <string>
#include <string_view>

#include "dtrun/abi/services.h"

namespace dtrun::plugin {

const dtrun_log_service* LogService();
const dtrun_kv_service* KvService();
const dtrun_memory_service* MemoryService();
const dtrun_plugins_service* PluginsService();

// A view of a string that a plugin passed; its data may be null if it is empty.
inline std::string_view View(dtrun_string text) {
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}
inline std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

}  // namespace dtrun::plugin
