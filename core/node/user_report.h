// What a node that its own user has started tells that user: where its root is, that it has joined, which
// ranks run here and how they ended, and where it was started otherwise than the root, whose command and
// environment run on every node.
//
// Owned by the agent; loop thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/protocol/host.h"
#include "core/verdict/facts.h"

namespace dtrun::node {

// How this node was started.
struct OwnStart {
  std::vector<std::string> command;  // the program, or script, and its arguments; empty: not to be compared
  int processes = 0;                 // on this host; 0: the user did not say
};

class UserReport {
 public:
  // `environment`: of this process, NAME=VALUE.
  UserReport(OwnStart own, std::vector<std::string> environment, std::function<void(const std::string&)> say);

  void Joining(const std::string& name, int port);
  void Joined(const std::string& root, const std::string& peer);
  // Returns what differs here from what the root starts, a sentence each; at the first call only.
  std::vector<std::string> Prepared(const protocol::Prepare& prepare);
  void Started(const protocol::Start& start);
  void Ended(const protocol::Ended& ended);
  void Over();

 private:
  const OwnStart own_;
  const std::vector<std::string> environment_;
  const std::function<void(const std::string&)> say_;
  std::string root_, run_dir_;
  bool compared_ = false;
  int world_size_ = 0;
  verdict::Facts here_;  // the ranks of this host, and how they ended
};

}  // namespace dtrun::node
