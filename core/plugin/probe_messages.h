// The messages between a probe and its parent, as frames on their socketpair: the child sends its Description
// once the plugin is loaded, then answers each request. Every answer may be an Error instead.
//
// Both ends are the same program, but the plugin may have corrupted the child: a frame that does not decode
// is an error, never undefined behaviour. Values; any thread.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/plugin/plugin.h"

namespace dtrun::plugin {

// `options`: options::ToJson.
struct LaunchRequest {
  std::string options;
  int host_count = 1;
  int local_ranks = 1;
  void Fields(auto& io) {
    io("options", options);
    io("host_count", host_count);
    io("local_ranks", local_ranks);
  }
};
struct PlanRequest {
  std::string options;
  LaunchJob job;
  void Fields(auto& io) {
    io("options", options);
    io("job", job);
  }
};
struct HostsRequest {
  std::string options;
  hosts::Environment environment;
  void Fields(auto& io) {
    io("options", options);
    io("environment", environment, wire::kMostEntries);
  }
};
struct ConnectCall {
  std::string options;
  ConnectRequest request;
  void Fields(auto& io) {
    io("options", options);
    io("request", request);
  }
};
using ToProbe = std::variant<LaunchRequest, PlanRequest, HostsRequest, ConnectCall>;

// Some processes of a plan, as their difference from the first one.
struct PlanPart {
  struct Process {
    int host = 0, rank = 0, local_rank = 0, rank_count = 1;
    std::optional<std::vector<std::string>> argv, unset;  // none: as the first one's
    std::optional<std::string> cwd;
    bool shares = false;  // has the variables that the part shares
    ProcessVariables::Map own;
    void Fields(auto& io) {
      io("host", host);
      io("rank", rank);
      io("local_rank", local_rank);
      io("rank_count", rank_count);
      io("argv", argv, wire::kMostEntries);
      io("unset", unset, wire::kMostEntries);
      io("cwd", cwd);
      io("shares", shares);
      io("own", own, wire::kMostEntries);
    }
  };
  ProcessVariables::Map shared;
  std::vector<Process> processes;
  std::vector<std::string> notes;
  bool more = false;  // another part follows
  void Fields(auto& io) {
    io("shared", shared, wire::kMostEntries);
    io("processes", processes, wire::kMostEntries);
    io("notes", notes, wire::kMostEntries);
    io("more", more);
  }
};
PlanPart PartOf(const LaunchPlan& plan, bool more);
void AddTo(LaunchPlan* plan, PlanPart part);

struct StartCommands {
  std::vector<hosts::StartCommand> commands;
  void Fields(auto& io) { io("commands", commands, wire::kMostHosts); }
};
using FromProbe = std::variant<Error, Description, LaunchInfo, PlanPart, hosts::Allocation, StartCommands>;

// Whole frames, size included.
std::string Encode(const ToProbe& message);
std::string Encode(const FromProbe& message);

Result<ToProbe> DecodeRequest(std::string_view payload);
Result<FromProbe> DecodeAnswer(std::string_view payload);

}  // namespace dtrun::plugin
