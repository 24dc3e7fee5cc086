#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>

#include "core/plugin/host.h"
#include "core/plugin/services.h"

namespace dtrun::plugin {
namespace {

int LevelFromEnvironment() {
  const char* text = std::getenv("DTRUN_LOG");
  const std::string_view level = text == nullptr ? "" : text;
  if (level == "debug") return DTRUN_LOG_DEBUG;
  if (level == "info") return DTRUN_LOG_INFO;
  if (level == "error") return DTRUN_LOG_ERROR;
  return DTRUN_LOG_WARN;
}

struct Log {
  std::atomic<int> level = LevelFromEnvironment();
  std::mutex mutex;
  std::string prefix;

  static Log& Get() {
    static auto* log = new Log;  // plugin threads may log after main has returned
    return *log;
  }
};

const char* LevelText(std::int32_t level) {
  switch (level) {
    case DTRUN_LOG_DEBUG: return "debug";
    case DTRUN_LOG_INFO: return "info";
    case DTRUN_LOG_WARN: return "warning";
    default: return "error";
  }
}

// One write(2), so that lines of several threads and ranks do not mix. A reader that went
// away, or a full non-blocking pipe, costs the line: there is nowhere to report it.
void WriteAll(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::int32_t Enabled(const dtrun_host*, std::int32_t level) {
  return level >= Log::Get().level.load(std::memory_order_relaxed) ? 1 : 0;
}

void Write(const dtrun_host* host, std::int32_t level, const char* topic, dtrun_string text) {
  if (Enabled(host, level) == 0) return;
  const int saved_errno = errno;
  std::string line = "dtrun: ";
  {
    const std::lock_guard lock(Log::Get().mutex);
    line += Log::Get().prefix;
  }
  line += LevelText(level);
  line += ": ";
  if (topic != nullptr && topic[0] != '\0') line.append(topic).append(": ");
  for (const char c : View(text)) line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  WriteAll(line);
  errno = saved_errno;
}

}  // namespace

const dtrun_log_service* LogService() {
  static constexpr dtrun_log_service kService{sizeof(dtrun_log_service), 0, Enabled, Write};
  return &kService;
}

void SetLog(int level, std::string prefix) {
  Log& log = Log::Get();
  log.level.store(level, std::memory_order_relaxed);
  const std::lock_guard lock(log.mutex);
  log.prefix = std::move(prefix);
}

}  // namespace dtrun::plugin
