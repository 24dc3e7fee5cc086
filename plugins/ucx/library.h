// UCX, opened at run time.
//
// One per process, opened by the first backend that is made. Constant once made; any thread. It is
// not linked, so that it finds settings of ours when it is loaded: its signal handlers, memory hooks
// and file system are off unless the user's own environment says otherwise (openucx/ucx#4190, #5644).
#pragma once

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <string>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::ucx_plugin {

// clang-format off
#define DTRUN_UCP_FUNCTIONS(X)                                                                              \
  X(get_version_string) X(init_version) X(cleanup) X(config_read) X(config_modify) X(config_release)        \
  X(context_query) X(mem_map) X(mem_unmap) X(worker_create) X(worker_destroy) X(worker_get_address)         \
  X(worker_release_address) X(worker_progress) X(worker_get_efd) X(worker_arm) X(ep_create)                 \
  X(ep_close_nbx) X(ep_print_info) X(tag_send_nbx) X(tag_recv_nbx) X(request_cancel)                        \
  X(request_check_status) X(request_free)
#define DTRUN_UCT_FUNCTIONS(X)                                                                              \
  X(query_components) X(release_component_list) X(component_query) X(md_config_read) X(md_open)             \
  X(md_close) X(md_query) X(md_detect_memory_type) X(md_query_tl_resources) X(release_tl_resource_list)
// clang-format on

class Library {
 public:
  // Opens it on the first call. Throws sdk::Failure that says what was tried.
  static const Library& Get(const sdk::Host& host);

  std::string version() const { return get_version_string(); }
  const std::string& path() const { return library_.path(); }
  // The program had loaded it before, with its own settings.
  bool found_loaded() const { return library_.was_loaded(); }

  std::string StatusText(ucs_status_t status) const { return status_string(status); }
  // The last warning or error that UCX logged on this thread, in parentheses; "" when there was none
  // since the last call.
  static std::string TakeLastWords();
  // "<what>: <UCX's text>; <advice>"
  sdk::Failure Failed(ucs_status_t status, const std::string& what, const std::string& advice = "",
                      dtrun_status code = DTRUN_VENDOR, int peer = -1) const;
  // Throws when `status` is an error.
  void Check(ucs_status_t status, const std::string& what) const {
    if (status != UCS_OK) throw Failed(status, what);
  }

 private:
  sdk::SharedLibrary library_;

 public:
#define DTRUN_UCP_FUNCTION(name) decltype(&::ucp_##name) name = library_["ucp_" #name];
  DTRUN_UCP_FUNCTIONS(DTRUN_UCP_FUNCTION)
#define DTRUN_UCT_FUNCTION(name) decltype(&::uct_##name) name = library_["uct_" #name];
  DTRUN_UCT_FUNCTIONS(DTRUN_UCT_FUNCTION)
  decltype(&::uct_config_release) uct_config_release = library_["uct_config_release"];

 private:
  explicit Library(const sdk::Host& host);

  decltype(&::ucs_status_string) status_string = library_["ucs_status_string"];
};

}  // namespace dtrun::ucx_plugin
