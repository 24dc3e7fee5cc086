// What libpmix asks of its host, brought from its thread to a loop.
//
// libpmix knows one host per process and calls back without a context, on a thread of its own.
// Loop thread of dtrun-pmix, but for what libpmix does inside. Only built where PMIx's headers are.
#pragma once

#include <set>
#include <string>

#include "core/base/asio.h"
#include "core/pmi/libpmix/pmix_library.h"

namespace dtrun::pmi {

// A fence that ranks of this host wait in; to be answered once.
struct PmixFence {
  pmix_modex_cbfunc_t answer = nullptr;
  void* context = nullptr;

  void Fail(pmix_status_t status) const { answer(status, nullptr, 0, context, nullptr, nullptr); }
  void Complete(const std::string& bytes) const;
};

class PmixHost {
 public:
  virtual ~PmixHost() = default;
  virtual void OnStarted(int rank) = 0;
  virtual void OnFinished(int rank) = 0;
  virtual void OnAborted(int rank, int code, const std::string& message) = 0;
  virtual void OnSaid(int rank, const std::string& text) = 0;
  // All ranks of this host that take part have come. `job` is empty for ranks of several jobs,
  // `ranks` for all of one.
  virtual void OnFence(const std::string& job, const std::set<int>& ranks, std::string bytes,
                       PmixFence fence) = 0;
};

// The functions that bring calls to the host below.
pmix_server_module_t PmixModule();

// From now on `host` is called on `loop`; until null is given, nothing is called after that.
void SetPmixHost(PmixHost* host, boost::asio::io_context* loop);

}  // namespace dtrun::pmi
