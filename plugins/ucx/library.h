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
  // Throws when `status` is an error: "<what>: <UCX's text>".
  void Check(ucs_status_t status, const std::string& what) const;

 private:
  sdk::SharedLibrary library_;

 public:
  decltype(&::ucp_get_version_string) get_version_string = library_["ucp_get_version_string"];
  decltype(&::ucp_init_version) init_version = library_["ucp_init_version"];
  decltype(&::ucp_cleanup) cleanup = library_["ucp_cleanup"];
  decltype(&::ucp_config_read) config_read = library_["ucp_config_read"];
  decltype(&::ucp_config_modify) config_modify = library_["ucp_config_modify"];
  decltype(&::ucp_config_release) config_release = library_["ucp_config_release"];
  decltype(&::ucp_context_query) context_query = library_["ucp_context_query"];
  decltype(&::ucp_mem_map) mem_map = library_["ucp_mem_map"];
  decltype(&::ucp_mem_unmap) mem_unmap = library_["ucp_mem_unmap"];
  decltype(&::ucp_worker_create) worker_create = library_["ucp_worker_create"];
  decltype(&::ucp_worker_destroy) worker_destroy = library_["ucp_worker_destroy"];
  decltype(&::ucp_worker_get_address) worker_get_address = library_["ucp_worker_get_address"];
  decltype(&::ucp_worker_release_address) worker_release_address = library_["ucp_worker_release_address"];
  decltype(&::ucp_worker_progress) worker_progress = library_["ucp_worker_progress"];
  decltype(&::ucp_worker_get_efd) worker_get_efd = library_["ucp_worker_get_efd"];
  decltype(&::ucp_worker_arm) worker_arm = library_["ucp_worker_arm"];
  decltype(&::ucp_ep_create) ep_create = library_["ucp_ep_create"];
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = library_["ucp_ep_close_nbx"];
  decltype(&::ucp_ep_print_info) ep_print_info = library_["ucp_ep_print_info"];
  decltype(&::ucp_tag_send_nbx) tag_send_nbx = library_["ucp_tag_send_nbx"];
  decltype(&::ucp_tag_recv_nbx) tag_recv_nbx = library_["ucp_tag_recv_nbx"];
  decltype(&::ucp_request_cancel) request_cancel = library_["ucp_request_cancel"];
  decltype(&::ucp_request_check_status) request_check_status = library_["ucp_request_check_status"];
  decltype(&::ucp_request_free) request_free = library_["ucp_request_free"];

  decltype(&::uct_query_components) query_components = library_["uct_query_components"];
  decltype(&::uct_release_component_list) release_component_list = library_["uct_release_component_list"];
  decltype(&::uct_component_query) component_query = library_["uct_component_query"];
  decltype(&::uct_md_config_read) md_config_read = library_["uct_md_config_read"];
  decltype(&::uct_config_release) uct_config_release = library_["uct_config_release"];
  decltype(&::uct_md_open) md_open = library_["uct_md_open"];
  decltype(&::uct_md_close) md_close = library_["uct_md_close"];
  decltype(&::uct_md_query) md_query = library_["uct_md_query"];
  decltype(&::uct_md_detect_memory_type) md_detect_memory_type = library_["uct_md_detect_memory_type"];
  decltype(&::uct_md_query_tl_resources) md_query_tl_resources = library_["uct_md_query_tl_resources"];
  decltype(&::uct_release_tl_resource_list) release_tl_resource_list =
      library_["uct_release_tl_resource_list"];

 private:
  explicit Library(const sdk::Host& host);

  decltype(&::ucs_status_string) status_string = library_["ucs_status_string"];
};

}  // namespace dtrun::ucx_plugin
