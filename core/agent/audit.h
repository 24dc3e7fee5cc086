// Looks at the flight recorder ten times a second while the job runs.
//
// Owned by the host whose ranks write it; loop thread. What it finds goes to the root, which tells the
// user and all hosts. What ranks elsewhere call comes as excerpts, which other hosts' audits send.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/comm/recorder/auditor.h"
#include "core/comm/recorder/excerpt.h"

namespace dtrun::agent {

class Audit {
 public:
  struct Events {
    std::function<void(comm::Difference)> differed;            // at most once
    std::function<void(comm::Damage)> damaged;                 // once for a rank
    std::function<void(std::vector<comm::Excerpt>)> reported;  // for the other hosts
  };

  // `loop` and the memory of `book` outlive it. `ranks` of the world live on this host.
  Audit(boost::asio::io_context& loop, const comm::Book& book, std::vector<int> ranks, Events events);

  ~Audit() { *ended_ = true; }
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // What the ranks of this host called last.
  std::string History() const;

 private:
  void Wait();
  void Look();
  bool IsHere(int rank) const;

  comm::Auditor auditor_;
  comm::Reporter reporter_;
  const std::vector<int> ranks_;
  boost::asio::steady_timer timer_;
  const Events events_;
  bool differed_ = false;
  int looks_ = 0;                                                      // at a difference that is not exact
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a tick that is due already
};

}  // namespace dtrun::agent
