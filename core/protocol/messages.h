// The messages of root and agent on their channel: the commands and events of core/protocol/host.h, the
// agent's introduction, and the bytes of store clients.
//
// Authenticated peers are still validated: decoding bounds counts and memory, and core/protocol/protocol.h
// checks values and order. Pure; any thread.
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

// The agent's first message: describes its host.
struct Introduction {
  std::string host_name;   // the host's own name
  std::string machine;     // boot id and network namespace: equal on the same machine only
  std::string processors;  // binding::ToText of the CPUs that dtrun may use
  binding::Gpus gpus;      // all GPUs of the host
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
// A line of the agent's log with its line feed. Sent only if the join request asked for a log
// (core/log/log.h).
struct Logged {
  std::string line;
};
// The job is over: exit with this code. `why` is set if the job never began.
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

// The result contains views into `bytes`.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToRoot> DecodeToRoot(std::string_view bytes);

}  // namespace dtrun::protocol
