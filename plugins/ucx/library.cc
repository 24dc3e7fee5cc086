#include "library.h"

#include <dlfcn.h>
#include <ucs/debug/log_def.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

constexpr const char* kFile = "libucp.so.0";

// Environment variables for as long as it lives; those that are set already stay as they are.
// UCX reads these ones while it is being loaded and never again.
class TemporaryEnvironment {
 public:
  explicit TemporaryEnvironment(std::initializer_list<std::pair<const char*, const char*>> values) {
    for (const auto& [name, value] : values) {
      if (getenv(name) != nullptr) continue;
      setenv(name, value, 0);
      added_.push_back(name);
    }
  }
  ~TemporaryEnvironment() {
    for (const char* name : added_) unsetenv(name);
  }
  TemporaryEnvironment(const TemporaryEnvironment&) = delete;
  TemporaryEnvironment& operator=(const TemporaryEnvironment&) = delete;

 private:
  std::vector<const char*> added_;
};

template <class Function>
void Resolve(void* image, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(image, name));
  if (function == nullptr) {
    throw Failure(DTRUN_VENDOR, std::string(kFile) + " lacks '" + name + "'; install UCX 1.13 or newer");
  }
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
  static const Library* const library = new Library(host);  // never closed: UCX keeps threads and mappings
  return *library;
}

Library::Library(const sdk::Host& host) {
  void* image = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  found_loaded_ = image != nullptr;
  if (!found_loaded_) {
    const TemporaryEnvironment environment{{"UCX_HANDLE_ERRORS", "none"},
                                           {"UCX_DEBUG_SIGNO", "0"},
                                           {"UCX_VFS_ENABLE", "n"},
                                           {"UCX_MEM_EVENTS", "n"},
                                           {"UCX_MEM_MMAP_HOOK_MODE", "none"},
                                           {"UCX_MEM_MALLOC_HOOKS", "n"},
                                           {"UCX_MEM_MALLOC_RELOC", "n"},
                                           {"UCX_MEM_CUDA_HOOK_MODE", "none"},
                                           {"UCX_MEM_DYNAMIC_MMAP_THRESH", "n"}};
    image = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  }
  if (image == nullptr) {
    const char* const why = dlerror();
    throw Failure(DTRUN_VENDOR, std::string("cannot open '") + kFile +
                                    "': " + (why != nullptr ? why : "unknown") +
                                    "; install UCX (package libucx0) or add its folder to LD_LIBRARY_PATH");
  }
  Resolve(image, "ucp_get_version_string", get_version_string);
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  decltype(&::ucp_get_version) get_version = nullptr;
  Resolve(image, "ucp_get_version", get_version);
  get_version(&major, &minor, &release);
  if (major != UCP_API_MAJOR || minor < UCP_API_MINOR) {
    throw Failure(DTRUN_VENDOR, std::string(kFile) + " is UCX " + get_version_string() +
                                    ", this plugin was built for " + std::to_string(UCP_API_MAJOR) + "." +
                                    std::to_string(UCP_API_MINOR) + " and newer; install that");
  }
  Resolve(image, "ucp_init_version", init_version);
  Resolve(image, "ucp_cleanup", cleanup);
  Resolve(image, "ucp_config_read", config_read);
  Resolve(image, "ucp_config_modify", config_modify);
  Resolve(image, "ucp_config_release", config_release);
  Resolve(image, "ucp_worker_create", worker_create);
  Resolve(image, "ucp_worker_destroy", worker_destroy);
  Resolve(image, "ucp_worker_get_address", worker_get_address);
  Resolve(image, "ucp_worker_release_address", worker_release_address);
  Resolve(image, "ucp_worker_progress", worker_progress);
  Resolve(image, "ucp_worker_get_efd", worker_get_efd);
  Resolve(image, "ucp_worker_arm", worker_arm);
  Resolve(image, "ucp_ep_create", ep_create);
  Resolve(image, "ucp_ep_close_nbx", ep_close_nbx);
  Resolve(image, "ucp_ep_print_info", ep_print_info);
  Resolve(image, "ucp_tag_send_nbx", tag_send_nbx);
  Resolve(image, "ucp_tag_recv_nbx", tag_recv_nbx);
  Resolve(image, "ucp_request_cancel", request_cancel);
  Resolve(image, "ucp_request_check_status", request_check_status);
  Resolve(image, "ucp_request_free", request_free);
  // The libraries below come with it.
  Resolve(image, "uct_query_components", query_components);
  Resolve(image, "uct_release_component_list", release_component_list);
  Resolve(image, "uct_component_query", component_query);
  Resolve(image, "uct_md_config_read", md_config_read);
  Resolve(image, "uct_config_release", uct_config_release);
  Resolve(image, "uct_md_open", md_open);
  Resolve(image, "uct_md_close", md_close);
  Resolve(image, "uct_md_query_tl_resources", md_query_tl_resources);
  Resolve(image, "uct_release_tl_resource_list", release_tl_resource_list);
  Resolve(image, "ucs_status_string", status_string);

  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(init_version), &info) != 0;
  path_ = known ? info.dli_fname : "unknown";

  // A process that brought its own UCX keeps its own log too.
  const auto push_handler =
      reinterpret_cast<decltype(&::ucs_log_push_handler)>(dlsym(image, "ucs_log_push_handler"));
  if (push_handler != nullptr && !found_loaded_) {
    ucx_log.emplace(host, "ucx");
    push_handler(&TakeLine);
  }
}

std::string Library::TakeLastWords() {
  const std::string words = std::exchange(last_words, {});
  return words.empty() ? "" : " (" + words + ")";
}

void Library::Check(ucs_status_t status, const std::string& what) const {
  if (status == UCS_OK) return;
  throw Failure(DTRUN_VENDOR, what + ": " + StatusText(status) + TakeLastWords()).Vendor("ucx", status);
}

}  // namespace dtrun::ucx_plugin
