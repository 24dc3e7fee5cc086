// What root and agent say to each other over their channel: the commands and events of
// core/agent/host.h, the agent's introduction, and the bytes of store clients.
//
// A peer that has proved that it knows the key may send anything all the same: what decodes is bounded in
// count and memory, and what it may mean when is checked by core/agent/protocol.h. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/agent/host.h"
#include "core/base/result.h"
#include "core/binding/gpu.h"

namespace dtrun::agent {

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
// A question of core/examination, and its answer.
struct Examine {
  std::string question;
  std::vector<std::string> environment;  // of the ranks, as in Prepare; empty: the host's own
};
struct Examined {
  std::string answer;
};
// The job is over: leave with this exit code. `why` is set when it never began.
struct Over {
  int exit_code = 0;
  std::string why;
};

using ToAgent = std::variant<Prepare, Start, Signal, Stop, Kill, Exchanged, ClientData, ClientClosed, Over,
                             Survey, Prove, Measure, Called, Differed, Examine, Inspect>;
using ToRoot = std::variant<Introduction, Prepared, Refused, Started, Output, Ended, Said, Gone, Asked,
                            Offered, MpiStarted, MpiFinished, MpiAborted, ClientOpened, ClientData,
                            ClientClosed, Surveyed, Proven, Measured, Called, Differed, Examined, Lost,
                            Looked, RankEnded, Inspected, MpiServerLost>;

std::string Encode(const ToAgent& message);
std::string Encode(const ToRoot& message);

// Views in the result point into `bytes`.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToRoot> DecodeToRoot(std::string_view bytes);

}  // namespace dtrun::agent
