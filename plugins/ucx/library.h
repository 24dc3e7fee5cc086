// UCX, opened at run time: which file it came from, and its functions by name.
//
// One per process, opened by the first backend that is made and never closed. Constant once
// made; any thread. Nothing of UCX is linked, so that this plugin can be listed and described
// on a machine without it, and so that UCX finds the settings below when it is loaded: its
// signal handlers, memory hooks and file system are off unless the user's own environment
// says otherwise (openucx/ucx#4190, #5644).
#pragma once

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::ucx_plugin {

class Library {
 public:
  // Opens it on the first call. Throws sdk::Failure that says what was tried.
  static const Library& Get(const sdk::Host& host);

  std::string version() const { return get_version_string(); }
  const std::string& path() const { return path_; }
  // Somebody else had loaded it before, with settings of his own.
  bool found_loaded() const { return found_loaded_; }

  std::string StatusText(ucs_status_t status) const { return status_string(status); }
  // The last warning or error that UCX logged on this thread, in parentheses; "" when there was none
  // since the last call.
  static std::string TakeLastWords();
  // Throws when `status` is an error: "<what>: <UCX's text>".
  void Check(ucs_status_t status, const std::string& what) const;

  decltype(&::ucp_get_version_string) get_version_string = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_ep_print_info) ep_print_info = nullptr;
  decltype(&::ucp_tag_send_nbx) tag_send_nbx = nullptr;
  decltype(&::ucp_tag_recv_nbx) tag_recv_nbx = nullptr;
  decltype(&::ucp_request_cancel) request_cancel = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;

  decltype(&::uct_query_components) query_components = nullptr;
  decltype(&::uct_release_component_list) release_component_list = nullptr;
  decltype(&::uct_component_query) component_query = nullptr;
  decltype(&::uct_md_config_read) md_config_read = nullptr;
  decltype(&::uct_config_release) uct_config_release = nullptr;
  decltype(&::uct_md_open) md_open = nullptr;
  decltype(&::uct_md_close) md_close = nullptr;
  decltype(&::uct_md_query_tl_resources) md_query_tl_resources = nullptr;
  decltype(&::uct_release_tl_resource_list) release_tl_resource_list = nullptr;

 private:
  explicit Library(const sdk::Host& host);

  decltype(&::ucs_status_string) status_string = nullptr;
  std::string path_;
  bool found_loaded_ = false;
};

}  // namespace dtrun::ucx_plugin
