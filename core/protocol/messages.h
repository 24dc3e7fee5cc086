// The messages of root and agent on their channel: the commands and events of core/protocol/host.h, the
// agent's introduction, the bytes of store clients, and preflight.
//
// Authenticated peers are still validated: decoding keeps to the limits beside each field (core/wire), and
// core/protocol/protocol.h checks order and what depends on earlier messages. core/README.md says what a new
// message takes. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/binding/gpu.h"
#include "core/preflight/preflight.h"
#include "core/protocol/host.h"

namespace dtrun::protocol {

// The agent's first message: describes its host.
struct Introduction {
  static constexpr Rule kRule{"Introduction", In({Phase::kJoining})};
  std::string host_name;   // the host's own name
  std::string machine;     // boot id and network namespace: equal on the same machine only
  std::string processors;  // binding::ToText of the CPUs that dtrun may use
  binding::Gpus gpus;      // all GPUs of the host
  void Fields(auto& io) {
    io("host_name", host_name, wire::kMostName, wire::kPrintable);
    io("machine", machine, wire::kMostName);
    io("processors", processors);
    io("gpus", gpus);
  }
};
// Bytes of a client of the store (core/store/relay.h).
struct ClientOpened {
  static constexpr Rule kRule{"ClientOpened", kJoined};
  std::uint32_t client = 0;
  void Fields(auto& io) { io("client", client); }
};
struct ClientData {
  static constexpr Rule kRule{"ClientData", kJoined};
  std::uint32_t client = 0;
  std::string_view bytes;
  void Fields(auto& io) {
    io("client", client);
    io.Rest("bytes", bytes);
  }
};
struct ClientClosed {
  static constexpr Rule kRule{"ClientClosed", kJoined};
  std::uint32_t client = 0;
  void Fields(auto& io) { io("client", client); }
};
// A request of core/preflight, and its answer.
struct RunPreflight {
  static constexpr Rule kRule{.name = "RunPreflight", .phases = kWhileIdle, .asks = Request::kPreflight};
  preflight::Request request;
  std::vector<std::string> environment;  // of the ranks, as in Prepare; empty: the host's own
  void Fields(auto& io) {
    io("request", request);
    io("environment", environment, wire::kMostEntries);
  }
};
struct PreflightAnswered {
  static constexpr Rule kRule{
      .name = "PreflightAnswered", .phases = kWhileIdle, .answers = Request::kPreflight};
  preflight::Answer answer;
  void Fields(auto& io) { io("answer", answer); }
};
// A line of the agent's log with its line feed. Sent only if the join request asked for a log
// (core/log/log.h).
struct Logged {
  static constexpr Rule kRule{"Logged", kJoined};
  std::string line;
  void Fields(auto& io) { io("line", line); }
};
// The job is over: exit with this code. `why` is set if the job never began.
struct Over {
  static constexpr Rule kRule{"Over", kAnyPhase};
  int exit_code = 0;
  std::string why;
  void Fields(auto& io) {
    io("exit_code", exit_code, wire::kAnyExitCode);
    io("why", why);
  }
};

using ToAgent =
    std::variant<Prepare, Start, Signal, Stop, Kill, Exchanged, ClientData, ClientClosed, Over, Survey,
                 CheckConnectivity, Measure, Called, Differed, RunPreflight, Inspect, ReadClock>;
using ToRoot =
    std::variant<Introduction, Prepared, Refused, Started, Output, Ended, Said, Gone, Asked, Offered,
                 MpiStarted, MpiFinished, MpiAborted, ClientOpened, ClientData, ClientClosed, Surveyed,
                 ConnectivityChecked, Measured, Called, Differed, PreflightAnswered, Lost, RendezvousSeen,
                 RankEnded, Inspected, MpiServerLost, Logged, Traced, ClockRead>;

std::string Encode(const ToAgent& message);
std::string Encode(const ToRoot& message);

// The result contains views into `bytes`.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToRoot> DecodeToRoot(std::string_view bytes);

}  // namespace dtrun::protocol
