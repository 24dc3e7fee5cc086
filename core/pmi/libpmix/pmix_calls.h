// Forwards libpmix's upcalls from its thread to an event loop.
//
// libpmix supports one host object per process, and calls back without a context on its own thread. Loop
// thread of dtrun-pmix, except inside libpmix. Built only if PMIx's headers are available.
#pragma once

#include <set>
#include <string>

#include "core/base/asio.h"
#include "core/pmi/libpmix/pmix_library.h"

namespace dtrun::pmi {

// A fence in which ranks of this host wait. Answer it once.
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
  // All participating ranks of this host have arrived. `job` is empty for ranks of several jobs, `ranks` is
  // empty for all ranks of one job.
  virtual void OnFence(const std::string& job, const std::set<int>& ranks, std::string bytes,
                       PmixFence fence) = 0;
};

// The callbacks that forward to the host below.
pmix_server_module_t PmixModule();

// From now on calls `host` on `loop`. After a null host nothing more is called.
void SetPmixHost(PmixHost* host, boost::asio::io_context* loop);

}  // namespace dtrun::pmi
