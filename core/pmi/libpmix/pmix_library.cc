#include "core/pmi/libpmix/pmix_library.h"

#include <dlfcn.h>

#include <chrono>
#include <future>
#include <memory>

namespace dtrun::pmi {
namespace {

// libpmix answers within microseconds unless it is broken.
constexpr std::chrono::seconds kPatience{10};

Result<PmixLibrary> Open() {
  void* const handle = dlopen(PMIX_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error::Of(DTRUN_NOT_FOUND,
                     "cannot open the PMIx library: {}; install libpmix2, or start the job with mpirun",
                     dlerror());
  }
  PmixLibrary library{};
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(library.server_init, "PMIx_server_init");
  find(library.server_register_nspace, "PMIx_server_register_nspace");
  find(library.server_register_client, "PMIx_server_register_client");
  find(library.server_setup_fork, "PMIx_server_setup_fork");
  find(library.generate_regex, "PMIx_generate_regex");
  find(library.generate_ppn, "PMIx_generate_ppn");
  find(library.Error_string, "PMIx_Error_string");
  find(library.Info_list_start, "PMIx_Info_list_start");
  find(library.Info_list_add, "PMIx_Info_list_add");
  find(library.Info_list_convert, "PMIx_Info_list_convert");
  find(library.Info_list_release, "PMIx_Info_list_release");
  find(library.Data_array_destruct, "PMIx_Data_array_destruct");
  if (missing.empty()) return library;
  return Error::Of(DTRUN_UNSUPPORTED, "the PMIx library {} has no {}; install PMIx 4.1 or newer", PMIX_SONAME,
                   missing);
}

}  // namespace

Result<const PmixLibrary*> OpenPmix() {
  static const Result<PmixLibrary> library = Open();
  if (!library) return library.error();
  return &*library;
}

Error PmixLibrary::Failed(const char* what, pmix_status_t status) const {
  return Error::Of(DTRUN_INTERNAL, "PMIx cannot {}: {}", what, Error_string(status));
}

Status AwaitPmix(const PmixLibrary& library, const char* what,
                 const std::function<pmix_status_t(pmix_op_cbfunc_t, void*)>& call) {
  // Shared with an answer that arrives too late.
  using Answer = std::shared_ptr<std::promise<pmix_status_t>>;
  const Answer answer = std::make_shared<std::promise<pmix_status_t>>();
  std::future<pmix_status_t> answered = answer->get_future();
  auto* const context = new Answer(answer);
  const pmix_op_cbfunc_t done = [](pmix_status_t status, void* given) {
    const std::unique_ptr<Answer> taken(static_cast<Answer*>(given));
    (*taken)->set_value(status);
  };
  pmix_status_t status = call(done, context);
  if (status == PMIX_SUCCESS) {
    if (answered.wait_for(kPatience) != std::future_status::ready) {
      return Error::Of(DTRUN_TIMEOUT, "PMIx does not {}: no answer within {} s", what, kPatience.count());
    }
    status = answered.get();
  } else {
    delete context;  // no answer will arrive
  }
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return {};
  return library.Failed(what, status);
}

PmixInfo::PmixInfo(const PmixLibrary& library) : library_(library), list_(library.Info_list_start()) {}

PmixInfo::~PmixInfo() {
  library_.Info_list_release(list_);
  if (array_.array != nullptr) library_.Data_array_destruct(&array_);
}

void PmixInfo::Text(const char* key, const std::string& value) { Add(key, value.c_str(), PMIX_STRING); }
void PmixInfo::Flag(const char* key, bool value) { Add(key, &value, PMIX_BOOL); }
void PmixInfo::Number(const char* key, std::uint32_t value) { Add(key, &value, PMIX_UINT32); }
void PmixInfo::Small(const char* key, std::uint16_t value) { Add(key, &value, PMIX_UINT16); }

void PmixInfo::Rank(const char* key, int rank) {
  const auto value = static_cast<pmix_rank_t>(rank);
  Add(key, &value, PMIX_PROC_RANK);
}

void PmixInfo::List(const char* key, PmixInfo& value) {
  value.Finish();
  Add(key, &value.array_, PMIX_DATA_ARRAY);
}

// Fails only for unknown types or without memory, where the process ends anyway.
void PmixInfo::Add(const char* key, const void* value, pmix_data_type_t type) {
  library_.Info_list_add(list_, key, value, type);
}

std::span<pmix_info_t> PmixInfo::Finish() {
  if (array_.array == nullptr) library_.Info_list_convert(list_, &array_);
  return {static_cast<pmix_info_t*>(array_.array), array_.size};
}

}  // namespace dtrun::pmi
