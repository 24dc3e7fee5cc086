// What this host serves to the MPI libraries of its ranks, in the agent's words: processes and events.
//
// Owned by the local host; loop thread. Serves nothing in jobs whose programs need no PMI.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/node/pmix_process.h"
#include "core/protocol/host.h"

namespace dtrun::node {

class MpiService {
 public:
  // `dir` is the private folder of the job. `buffer` is for reads, and may be shared. `emit` is called from
  // the loop.
  MpiService(boost::asio::io_context& loop, std::filesystem::path dir, std::span<char> buffer,
             std::function<void(const protocol::Event&)> emit)
      : loop_(loop), resume_(loop), dir_(std::move(dir)), buffer_(buffer), emit_(std::move(emit)) {}
  ~MpiService() { *ended_ = true; }

  // One generation.
  Status Begin(const pmi::Job& job);
  // Admits every rank that lives in the process; what it is started with is of the first of them.
  Result<pmi::Admission> Admit(const plan::Process& process);
  void Complete(const protocol::Exchanged& exchanged);
  // Before the end of a rank is told: tells what it did, and of a server that has died.
  void Look();
  // A child of this process was stopped: a server is resumed if it stays so, for ranks wait for it.
  void OnStopped(pid_t child, int signal);
  void End();

  // Children of this process that are none of the job's.
  std::vector<pid_t> servers() const;

 private:
  Result<UniqueFd> StartPmix();
  Result<pmi::Admission> Admit(int rank);
  void TellDeath();

  boost::asio::io_context& loop_;
  boost::asio::steady_timer resume_;
  const std::filesystem::path dir_;
  const std::span<char> buffer_;
  const std::function<void(const protocol::Event&)> emit_;
  std::unique_ptr<PmixProcess> process_;
  std::string died_;                     // how the process has; not yet told
  std::unique_ptr<pmi::Server> server_;  // of a generation that needs one
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
};

}  // namespace dtrun::node
