#include "core/pmi/libpmix/pmix_calls.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/pmi/open_mpi_message.h"

namespace dtrun::pmi {
namespace {

struct Desk {
  std::mutex mutex;
  PmixHost* host = nullptr;
  boost::asio::io_context* loop = nullptr;
} desk;

// Runs `work` on the loop if the host still exists then. False: it no longer exists.
template <class Work>
bool Hand(Work work) {
  const std::lock_guard lock(desk.mutex);
  if (desk.loop == nullptr) return false;
  boost::asio::post(*desk.loop, [work = std::move(work), host = desk.host]() mutable {
    if (desk.host == host) work(*host);  // only the loop's thread changes it
  });
  return true;
}

// Callbacks on libpmix's own thread. PMIX_OPERATION_SUCCEEDED: done, no callback will follow.

pmix_status_t OnConnected(const pmix_proc_t* process, void*, pmix_info_t*, size_t, pmix_op_cbfunc_t, void*) {
  Hand([rank = static_cast<int>(process->rank)](PmixHost& host) { host.OnStarted(rank); });
  return PMIX_OPERATION_SUCCEEDED;
}

// The rank continues, and may exit, once the host knows.
pmix_status_t OnFinalized(const pmix_proc_t* process, void*, pmix_op_cbfunc_t done, void* context) {
  const bool handed = Hand([rank = static_cast<int>(process->rank), done, context](PmixHost& host) {
    host.OnFinished(rank);
    if (done != nullptr) done(PMIX_SUCCESS, context);
  });
  return handed && done != nullptr ? PMIX_SUCCESS : PMIX_OPERATION_SUCCEEDED;
}

// Open MPI 4 sends a fixed text if it has no message.
std::string AbortText(const char* message) {
  return message == nullptr || std::strcmp(message, "N/A") == 0 ? "" : message;
}

// The whole job ends, whichever ranks the caller wants to abort.
pmix_status_t OnAbort(const pmix_proc_t* process, void*, int code, const char message[], pmix_proc_t*, size_t,
                      pmix_op_cbfunc_t done, void* context) {
  const bool handed = Hand([rank = static_cast<int>(process->rank), code, done, context,
                            text = AbortText(message)](PmixHost& host) {
    host.OnAborted(rank, code, text);
    done(PMIX_SUCCESS, context);
  });
  return handed ? PMIX_SUCCESS : PMIX_ERR_UNREACH;
}

// All participating ranks of this host have arrived; `data` is their contribution.
pmix_status_t OnFenceCall(const pmix_proc_t processes[], size_t count, const pmix_info_t[], size_t,
                          char* data, size_t size, pmix_modex_cbfunc_t answer, void* context) {
  std::string bytes(data == nullptr ? "" : std::string(data, size));
  std::free(data);  // owned by the host
  std::set<int> ranks;
  std::string job = count == 0 ? "" : processes[0].nspace;
  for (std::size_t i = 0; i < count; ++i) {
    if (job != processes[i].nspace) job.clear();  // ranks of several jobs: not supported
    if (processes[i].rank != PMIX_RANK_WILDCARD) ranks.insert(static_cast<int>(processes[i].rank));
  }
  const bool handed = Hand([job = std::move(job), ranks = std::move(ranks), bytes = std::move(bytes), answer,
                            context](PmixHost& host) mutable {
    host.OnFence(job, ranks, std::move(bytes), {answer, context});
  });
  return handed ? PMIX_SUCCESS : PMIX_ERR_UNREACH;
}

// Messages for the user, which Open MPI expects the launcher to print.
void OnLog(const pmix_proc_t* process, const pmix_info_t data[], size_t count, const pmix_info_t[], size_t,
           pmix_op_cbfunc_t done, void* context) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const pmix_value_t& value = data[i].value;
    if (value.type == PMIX_STRING && value.data.string != nullptr) text += value.data.string;
    if (value.type == PMIX_BYTE_OBJECT && value.data.bo.bytes != nullptr) {
      text += OpenMpiMessage({value.data.bo.bytes, value.data.bo.size});
    }
  }
  const int rank = static_cast<int>(process->rank);
  const bool handed = Hand([rank, text = std::move(text), done, context](PmixHost& host) {
    if (!text.empty()) host.OnSaid(rank, text);
    done(PMIX_SUCCESS, context);
  });
  if (!handed) done(PMIX_ERR_UNREACH, context);
}

// Data that was in no fence of all ranks stays on its host.
pmix_status_t OnDirectRequest(const pmix_proc_t*, const pmix_info_t[], size_t, pmix_modex_cbfunc_t, void*) {
  return PMIX_ERR_NOT_FOUND;
}

// Must exist for libpmix to accept the ranks' requests to remove files, which it handles itself.
pmix_status_t OnJobControl(const pmix_proc_t*, const pmix_proc_t[], size_t, const pmix_info_t[], size_t,
                           pmix_info_cbfunc_t, void*) {
  return PMIX_ERR_NOT_SUPPORTED;
}

}  // namespace

pmix_server_module_t PmixModule() {
  pmix_server_module_t module{};
  module.client_connected2 = OnConnected;
  module.client_finalized = OnFinalized;
  module.abort = OnAbort;
  module.fence_nb = OnFenceCall;
  module.direct_modex = OnDirectRequest;
  module.log = OnLog;
  module.job_control = OnJobControl;
  return module;
}

void SetPmixHost(PmixHost* host, boost::asio::io_context* loop) {
  const std::lock_guard lock(desk.mutex);
  desk.host = host;
  desk.loop = loop;
}

void PmixFence::Complete(const std::string& bytes) const {
  auto* const kept = new std::string(bytes);  // until libpmix releases it
  answer(
      PMIX_SUCCESS, kept->data(), kept->size(), context,
      [](void* released) { delete static_cast<std::string*>(released); }, kept);
}

}  // namespace dtrun::pmi
