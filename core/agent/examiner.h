// Asks the hosts of a job a question each (core/examination) before it is planned, all at once.
//
// Lives on the root's loop thread, which it runs. This host is asked in a thread of its own:
// an answer takes seconds, and the other hosts want to hear from the root meanwhile.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/agent/remote_host.h"
#include "core/agent/user_signals.h"
#include "core/base/asio.h"

namespace dtrun::agent {

class Examiner {
 public:
  // Both outlive it.
  Examiner(boost::asio::io_context& loop, UserSignals& signals) : loop_(loop), signals_(signals) {}
  ~Examiner();
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  // The answers by host; a null host is this one. The error names a host that was lost;
  // DTRUN_ABORTED when the user ended the job. REQUIRES: a question for each host.
  Result<std::vector<std::string>> Run(const std::vector<std::string>& questions,
                                       const std::vector<RemoteHost*>& hosts);
  // The signal that ended it, or 0.
  int interrupted() const { return interrupted_; }

 private:
  void Take(std::size_t host, Result<std::string> answer);

  boost::asio::io_context& loop_;
  UserSignals& signals_;
  std::vector<std::optional<std::string>> answers_;
  std::size_t missing_ = 0;
  std::optional<Error> failure_;
  int interrupted_ = 0;
  std::thread here_;
};

}  // namespace dtrun::agent
