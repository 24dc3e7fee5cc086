#include "library.h"

#include <ucs/debug/log_def.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "dtrun/plugin/environment.hpp"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

constexpr const char* kFile = "libucp.so.0";

// While UCX is loaded; those that are set already stay as they are.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"UCX_HANDLE_ERRORS", "none"},
    {"UCX_DEBUG_SIGNO", "0"},
    {"UCX_VFS_ENABLE", "n"},
    {"UCX_MEM_EVENTS", "n"},
    {"UCX_MEM_MMAP_HOOK_MODE", "none"},
    {"UCX_MEM_MALLOC_HOOKS", "n"},
    {"UCX_MEM_MALLOC_RELOC", "n"},
    {"UCX_MEM_CUDA_HOOK_MODE", "none"},
    {"UCX_MEM_DYNAMIC_MMAP_THRESH", "n"},
    // Without hooks it would not learn of memory of devices, and take it for the host's (openucx/ucx#2755).
    {"UCX_MEMTYPE_CACHE", "n"}};

// UCX reads these variables while it is being loaded and never again.
sdk::SharedLibrary OpenUcx() {
  if (std::optional<sdk::SharedLibrary> loaded = sdk::SharedLibrary::FindLoaded({kFile})) return *loaded;
  const sdk::KeepEnvironment environment;
  for (const auto& [name, value] : kVariables) setenv(name, value, 0);
  return sdk::SharedLibrary::Open({kFile}, "UCX",
                                  "install UCX (package libucx0) or add its folder to LD_LIBRARY_PATH");
}

// What UCX has to say goes to dtrun's log: what ends a job is reported by the call that failed.
std::optional<sdk::Log> ucx_log;
thread_local std::string last_words;

ucs_log_func_rc_t TakeLine(const char*, unsigned, const char*, ucs_log_level_t level,
                           const ucs_log_component_config_t*, const char* message, va_list arguments) {
  if (level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;
  char text[512];
  std::vsnprintf(text, sizeof text, message, arguments);
  last_words = text;
  ucx_log->Debug("UCX: " + last_words);
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

const Library& Library::Get(const sdk::Host& host) {
  static const Library* const library = new Library(host);
  return *library;
}

Library::Library(const sdk::Host& host) : library_(OpenUcx()) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  decltype(&::ucp_get_version) get_version = library_["ucp_get_version"];
  get_version(&major, &minor, &release);
  if (major != UCP_API_MAJOR || minor < UCP_API_MINOR) {
    throw Failure(DTRUN_VENDOR, std::string(kFile) + " is UCX " + version() + ", this plugin was built for " +
                                    std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR) +
                                    " and newer; install that");
  }
  // A process that brought its own UCX keeps its own log too.
  const sdk::Symbol push_handler = library_.Find("ucs_log_push_handler");
  if (push_handler.present() && !found_loaded()) {
    ucx_log.emplace(host, "ucx");
    decltype(&::ucs_log_push_handler) push = push_handler;
    push(&TakeLine);
  }
}

std::string Library::TakeLastWords() {
  const std::string words = std::exchange(last_words, {});
  return words.empty() ? "" : " (" + words + ")";
}

Failure Library::Failed(ucs_status_t status, const std::string& what, const std::string& advice,
                        dtrun_status code, int peer) const {
  const std::string text = what + ": " + StatusText(status) + TakeLastWords();
  return Failure(code, text + (advice.empty() ? "" : "; " + advice), peer).Vendor("ucx", status);
}

}  // namespace dtrun::ucx_plugin
