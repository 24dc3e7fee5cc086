// libpmix, loaded by dtrun-pmix (core/pmi/libpmix/serve.h). The agent neither links nor loads it.
//
// Only this folder includes PMIx's headers; built only if they are available. Any thread.
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/result.h"

namespace dtrun::pmi {

// The functions of libpmix, without the prefix "PMIx_".
struct PmixLibrary {
  decltype(&::PMIx_server_init) server_init;
  decltype(&::PMIx_server_register_nspace) server_register_nspace;
  decltype(&::PMIx_server_register_client) server_register_client;
  decltype(&::PMIx_server_setup_fork) server_setup_fork;
  decltype(&::PMIx_generate_regex) generate_regex;
  decltype(&::PMIx_generate_ppn) generate_ppn;
  decltype(&::PMIx_Error_string) Error_string;
  decltype(&::PMIx_Info_list_start) Info_list_start;
  decltype(&::PMIx_Info_list_add) Info_list_add;
  decltype(&::PMIx_Info_list_convert) Info_list_convert;
  decltype(&::PMIx_Info_list_release) Info_list_release;
  decltype(&::PMIx_Data_array_destruct) Data_array_destruct;

  // "PMIx cannot WHAT: ..."
  Error Failed(const char* what, pmix_status_t status) const;
};

// The error names the library, the cause and the next step.
Result<const PmixLibrary*> OpenPmix();

// Makes a call that libpmix's thread answers, and waits for the answer with a time limit. `what`: for the
// error.
Status AwaitPmix(const PmixLibrary& library, const char* what,
                 const std::function<pmix_status_t(pmix_op_cbfunc_t done, void* context)>& call);

// A list of keys and values for libpmix.
class PmixInfo {
 public:
  explicit PmixInfo(const PmixLibrary& library);
  ~PmixInfo();
  PmixInfo(const PmixInfo&) = delete;
  PmixInfo& operator=(const PmixInfo&) = delete;

  void Text(const char* key, const std::string& value);
  void Flag(const char* key, bool value);
  void Number(const char* key, std::uint32_t value);
  void Small(const char* key, std::uint16_t value);
  void Rank(const char* key, int rank);
  void List(const char* key, PmixInfo& value);

  // Ends the list and returns it; valid as long as this object.
  std::span<pmix_info_t> Finish();

 private:
  void Add(const char* key, const void* value, pmix_data_type_t type);

  const PmixLibrary& library_;
  void* list_;
  pmix_data_array_t array_{};
};

}  // namespace dtrun::pmi
