// Serves PMI to the MPI libraries of this host's ranks, in terms of the agent's processes and events.
//
// Owned by the local host; loop thread. Does nothing in jobs with programs that need no PMI.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/timer.h"
#include "core/node/pmix_process.h"
#include "core/protocol/host.h"

namespace dtrun::node {

class MpiService {
 public:
  // `dir` is the private folder of the job. `buffer` is for reads and may be shared. The loop calls `emit`.
  MpiService(asio::io_context& loop, std::filesystem::path dir, std::span<char> buffer,
             std::function<void(const protocol::Event&)> emit)
      : loop_(loop), resume_(loop), dir_(std::move(dir)), buffer_(buffer), emit_(std::move(emit)) {}
  ~MpiService() { *ended_ = true; }

  // Begins a generation.
  Status Begin(const pmi::Job& job);
  // Admits every rank of the process. The start data is that of its first rank.
  Result<pmi::Admission> Admit(const plan::Process& process);
  void Complete(const protocol::Exchanged& exchanged);
  // Call before the end of a rank is reported: reports what the rank did, and a server that has died.
  void Look();
  // Call when a child of this process was stopped. A server that stays stopped is resumed, because ranks wait
  // for it.
  void OnStopped(pid_t child, int signal);
  void End();

  // The servers: children of this process that are not part of the job.
  std::vector<pid_t> servers() const;

 private:
  Result<UniqueFd> StartPmix();
  Result<pmi::Admission> Admit(int rank);
  void TellDeath();

  asio::io_context& loop_;
  Timer resume_;
  const std::filesystem::path dir_;
  const std::span<char> buffer_;
  const std::function<void(const protocol::Event&)> emit_;
  std::unique_ptr<PmixProcess> process_;
  std::string died_;                     // how the process died; not yet reported
  std::unique_ptr<pmi::Server> server_;  // only in a generation that needs one
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
};

}  // namespace dtrun::node
