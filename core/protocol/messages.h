// What root and agent say to each other over their channel: the commands and events of
// core/protocol/host.h, the agent's introduction, and the bytes of store clients.
//
// A peer that has proved that it knows the key may send anything all the same: what decodes is bounded in
// count and memory, and what it may mean when is checked by core/protocol/protocol.h. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/binding/gpu.h"
#include "core/protocol/host.h"

namespace dtrun::protocol {

// The agent's first message: what its host is.
struct Introduction {
  std::string host_name;   // as the host calls itself
  std::string machine;     // boot id and network namespace: equal on the same machine only
  std::string processors;  // binding::ToText of those that dtrun may use
  binding::Gpus gpus;      // all
};
// Bytes of a client of the store (core/store/relay.h).
struct ClientOpened {
  std::uint32_t client = 0;
};
struct ClientData {
  std::uint32_t client = 0;
  std::string_view bytes;
};
struct ClientClosed {
  std::uint32_t client = 0;
};
// A request of core/preflight, and its answer.
struct RunPreflight {
  std::string request;
  std::vector<std::string> environment;  // of the ranks, as in Prepare; empty: the host's own
};
struct PreflightAnswered {
  std::string answer;
};
// A line of the agent's log, with its line feed; only if the join request asked for a log (core/log/log.h).
struct Logged {
  std::string line;
};
// The job is over: leave with this exit code. `why` is set when it never began.
struct Over {
  int exit_code = 0;
  std::string why;
};

using ToAgent = std::variant<Prepare, Start, Signal, Stop, Kill, Exchanged, ClientData, ClientClosed, Over,
                             Survey, CheckConnectivity, Measure, Called, Differed, RunPreflight, Inspect>;
using ToRoot = std::variant<Introduction, Prepared, Refused, Started, Output, Ended, Said, Gone, Asked,
                            Offered, MpiStarted, MpiFinished, MpiAborted, ClientOpened, ClientData,
                            ClientClosed, Surveyed, ConnectivityChecked, Measured, Called, Differed,
                            PreflightAnswered, Lost, Looked, RankEnded, Inspected, MpiServerLost, Logged>;

std::string Encode(const ToAgent& message);
std::string Encode(const ToRoot& message);

// Views in the result point into `bytes`.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToRoot> DecodeToRoot(std::string_view bytes);

}  // namespace dtrun::protocol
