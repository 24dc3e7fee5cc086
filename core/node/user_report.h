// Reports to the user who started this node: where its root is, that it has joined, which ranks run here and
// how they ended. It also reports a start that differs from the root's: the root's command and environment
// are used on every node.
//
// Owned by the agent; loop thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/protocol/host.h"
#include "core/verdict/facts.h"

namespace dtrun::node {

// How this node was started.
struct OwnStart {
  std::vector<std::string> command;  // the program or script and its arguments; empty: do not compare
  int processes = 0;                 // on this host; 0: not specified by the user
  std::map<std::string, std::string> options = {};  // spec::OptionsGiven
};

class UserReport {
 public:
  // `environment`: this process's, NAME=VALUE.
  UserReport(OwnStart own, std::vector<std::string> environment, std::function<void(const std::string&)> say);

  void Joining(const std::string& name, int port);
  void Joined(const std::string& root, const std::string& peer);
  // Returns the differences from the root's start, one sentence each; at the first call only.
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
