#include "core/log/log.h"
#include "core/plugin/host.h"
#include "core/plugin/services.h"

namespace dtrun::plugin {
namespace {

log::Level LevelOf(std::int32_t level) {
  if (level <= DTRUN_LOG_DEBUG) return log::Level::kDebug;
  return level >= DTRUN_LOG_ERROR ? log::Level::kError : static_cast<log::Level>(level);
}

std::int32_t Enabled(const dtrun_host*, std::int32_t level) {
  return LevelOf(level) >= log::LowestKept() ? 1 : 0;
}

void Write(const dtrun_host*, std::int32_t level, const char* topic, dtrun_string text) {
  log::Room(topic == nullptr || *topic == '\0' ? "plugin" : topic).Write(LevelOf(level), View(text));
}

}  // namespace

const dtrun_log_service* LogService() {
  static constexpr dtrun_log_service kService{sizeof(dtrun_log_service), 0, Enabled, Write};
  return &kService;
}

}  // namespace dtrun::plugin
