// A plugin that breaks the first rule: its entry throws.
#include <stdexcept>

#include "dtrun/abi.h"

dtrun_status dtrun_plugin_entry_v1(const dtrun_host*, const dtrun_plugin**, dtrun_error*) {
  throw std::runtime_error("thrown by the entry");
}
