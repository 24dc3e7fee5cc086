#include "core/comm/devices.h"

#include <map>
#include <mutex>

#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

struct Names {
  std::mutex mutex;
  std::map<std::int32_t, std::string> of;
};

Names& AllNames() {
  static auto* const names = new Names;  // never freed: used until the process ends
  return *names;
}

}  // namespace

void NameKind(std::int32_t kind, const std::string& name) {
  Names& names = AllNames();
  const std::lock_guard lock(names.mutex);
  names.of[kind] = name;
}

std::string KindName(std::int32_t kind) {
  if (kind < DTRUN_DEVICE_OTHER) return sdk::DeviceKindText(kind);
  Names& names = AllNames();
  const std::lock_guard lock(names.mutex);
  const auto found = names.of.find(kind);
  return found == names.of.end() ? sdk::DeviceKindText(kind) : found->second;
}

}  // namespace dtrun::comm
