// What this host serves to the MPI libraries of its ranks, in the agent's words: processes and events.
//
// Owned by the local host; loop thread. Serves nothing in jobs whose programs need no PMI.
#pragma once

#include <functional>
#include <memory>

#include "core/agent/host.h"

namespace dtrun::agent {

class MpiService {
 public:
  // `emit` is called from the loop.
  MpiService(boost::asio::io_context& loop, pmi::Folders folders, std::function<void(const Event&)> emit)
      : loop_(loop), folders_(std::move(folders)), emit_(std::move(emit)) {}

  // One generation.
  Status Begin(const pmi::Job& job);
  // Admits every rank that lives in the process; what it is started with is of the first of them.
  Result<pmi::Admission> Admit(const plan::Process& process);
  void Complete(const Exchanged& exchanged);
  void End();

 private:
  boost::asio::io_context& loop_;
  const pmi::Folders folders_;
  const std::function<void(const Event&)> emit_;
  bool serves_ = false;
  std::unique_ptr<pmi::Server> server_;  // from the first generation that needs it
};

}  // namespace dtrun::agent
