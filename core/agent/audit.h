// Looks at the flight recorder ten times a second while the job runs.
//
// Owned by the run; its loop thread. What it finds is said to the user at once; the ranks
// hear of it from the recorder itself.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/agent/asio.h"
#include "core/comm/recorder/auditor.h"

namespace dtrun::agent {

class Audit {
 public:
  // `book` and `loop` outlive it.
  Audit(boost::asio::io_context& loop, comm::BookHead* book, std::function<void(const std::string&)> say);

  ~Audit() { *ended_ = true; }
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  std::string History() const { return auditor_.History(); }

 private:
  void Wait();

  comm::Auditor auditor_;
  boost::asio::steady_timer timer_;
  std::function<void(const std::string&)> say_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a tick that is due already
};

}  // namespace dtrun::agent
