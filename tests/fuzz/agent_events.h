// What an agent may say to its root, made of a fuzzer's choices: each event well formed, with numbers that
// may fit or not.
#pragma once

#include <limits>
#include <string>

#include "core/agent/messages.h"
#include "tests/fuzz/agent_parts.h"
#include "tests/fuzz/choose.h"

namespace dtrun::fuzz {

// Of the agent of `host`, each of whose hosts has two ranks.
class Events {
 public:
  Events(Source& in, int host, int hosts) : in_(in), host_(host), hosts_(hosts) {}

  agent::Introduction operator()(A<agent::Introduction>) const {
    return {in_.Name(), in_.Name(), in_.Coin() ? "0.0=0,1" : in_.Bytes(40), {}};
  }
  agent::Prepared operator()(A<agent::Prepared>) const {
    agent::Prepared prepared{in_.Int(), {}, "/s", "/r"};
    for (std::size_t i = in_.Count(); i > 0; --i) prepared.task_ports.emplace_back(Rank(), in_.Int());
    return prepared;
  }
  agent::Refused operator()(A<agent::Refused>) const {
    return {{in_.Rarely() ? static_cast<dtrun_status>(in_.Byte()) : DTRUN_SYSTEM, in_.Name()}};
  }
  agent::Started operator()(A<agent::Started>) const {
    agent::Started started;
    for (std::size_t i = in_.Count(); i > 0; --i) started.pids.push_back(in_.Int());
    return started;
  }
  agent::Output operator()(A<agent::Output>) const {
    const int rank = Rank();
    const auto stream = in_.Coin() ? output::Stream::kOut : output::Stream::kErr;
    return {rank, stream, Keep(in_.Bytes(64))};
  }
  agent::Ended operator()(A<agent::Ended>) const {
    return {Rank(), AnEnding(in_), in_.Rarely() ? in_.Int() : 0};
  }
  agent::Said operator()(A<agent::Said>) const { return {in_.Name()}; }
  agent::Gone operator()(A<agent::Gone>) const { return {in_.Name()}; }
  agent::Asked operator()(A<agent::Asked>) const { return {in_.Int()}; }
  agent::Offered operator()(A<agent::Offered>) const {
    return {{in_.Name(), SomeHosts(in_, hosts_), in_.Bytes(16)}};
  }
  agent::MpiStarted operator()(A<agent::MpiStarted>) const { return {Rank()}; }
  agent::MpiFinished operator()(A<agent::MpiFinished>) const { return {Rank()}; }
  agent::MpiAborted operator()(A<agent::MpiAborted>) const {
    return {Rank(), in_.Int(), in_.Name(), in_.Coin()};
  }
  agent::MpiServerLost operator()(A<agent::MpiServerLost>) const { return {in_.Name()}; }
  agent::ClientOpened operator()(A<agent::ClientOpened>) const { return {Client()}; }
  agent::ClientData operator()(A<agent::ClientData>) const { return {Client(), Keep(in_.Bytes(64))}; }
  agent::ClientClosed operator()(A<agent::ClientClosed>) const { return {Client()}; }
  agent::Surveyed operator()(A<agent::Surveyed>) const {
    agent::Surveyed surveyed;
    for (std::size_t i = in_.Count(); i > 0; --i) surveyed.offer.candidates.push_back(ACandidate(in_, host_));
    for (std::size_t i = in_.Count(); i > 0; --i)
      surveyed.offer.left_out.push_back({in_.Name(), net::Kind::kBridge, in_.Name(), in_.Name()});
    surveyed.offer.has_rdma = in_.Coin();
    return surveyed;
  }
  agent::Proven operator()(A<agent::Proven>) const {
    agent::Proven proven;
    for (std::size_t i = in_.Count(); i > 0; --i)
      proven.attempts.push_back({in_.Index(2), in_.Index(static_cast<std::size_t>(hosts_)), in_.Index(2),
                                 in_.Name(), std::chrono::nanoseconds(in_.Number())});
    return proven;
  }
  agent::Measured operator()(A<agent::Measured>) const {
    const double rates[] = {
        0, 1e9, 1e300, -1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
    return {{rates[in_.Below(6)], std::chrono::nanoseconds(in_.Number())}};
  }
  agent::Called operator()(A<agent::Called>) const { return SomeCalls(in_, 2 * host_, 2 * hosts_); }
  agent::Differed operator()(A<agent::Differed>) const {
    return {{in_.Byte(), in_.Index(4), in_.Index(4), in_.Name(), in_.Coin(), in_.Coin()}};
  }
  agent::Examined operator()(A<agent::Examined>) const {
    return {in_.Coin() ? R"({"backends":[],"checks":[],"clock_seconds":0})" : in_.Bytes(200)};
  }
  agent::Lost operator()(A<agent::Lost>) const { return {in_.Name(), in_.Coin()}; }
  agent::Looked operator()(A<agent::Looked>) const {
    return {in_.Coin(), {in_.Name()}, in_.Coin(), in_.Coin()};
  }
  agent::RankEnded operator()(A<agent::RankEnded>) const { return {Rank(), in_.Int(), AnEnding(in_)}; }
  agent::Inspected operator()(A<agent::Inspected>) const {
    agent::Inspected inspected{static_cast<std::uint32_t>(in_.Number()), {}, in_.Byte()};
    for (std::size_t i = in_.Count(); i > 0; --i) {
      agent::RankDoing& doing = inspected.ranks.emplace_back();
      doing.rank = Rank();
      doing.stand = static_cast<stacks::Stand>(in_.Below(8));
      doing.phrase = doing.text = in_.Name();
      doing.processor_ms = in_.Number();
      doing.bytes = in_.Number();
    }
    return inspected;
  }

 private:
  int Rank() const { return in_.Rarely() ? in_.Int() : 2 * host_ + static_cast<int>(in_.Below(2)); }
  std::uint32_t Client() const { return static_cast<std::uint32_t>(in_.Int()); }
  // Views in a message point here.
  std::string_view Keep(std::string bytes) const { return kept_ = std::move(bytes); }

  Source& in_;
  const int host_;
  const int hosts_;
  mutable std::string kept_;
};

// Encoded, as the agent of `host` sends it.
inline std::string AnEvent(Source& in, int host, int hosts) {
  const Events events(in, host, hosts);
  return Encode(AnyOf<agent::ToRoot>(in, events));
}

}  // namespace dtrun::fuzz
