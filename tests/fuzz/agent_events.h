// What an agent may say to its root, made of a fuzzer's choices: each event well formed, with numbers that
// may fit or not.
#pragma once

#include <limits>
#include <string>

#include "core/protocol/messages.h"
#include "tests/fuzz/agent_parts.h"
#include "tests/fuzz/choose.h"

namespace dtrun::fuzz {

// From the agent of `host`; each host has two ranks.
class Events {
 public:
  Events(Source& in, int host, int hosts) : in_(in), host_(host), hosts_(hosts) {}

  protocol::Introduction operator()(A<protocol::Introduction>) const {
    return {in_.Name(), in_.Name(), in_.Coin() ? "0.0=0,1" : in_.Bytes(40), {}};
  }
  protocol::Prepared operator()(A<protocol::Prepared>) const {
    protocol::Prepared prepared{in_.Int(), {}, "/s", "/r"};
    for (std::size_t i = in_.Count(); i > 0; --i) prepared.task_ports.emplace_back(Rank(), in_.Int());
    return prepared;
  }
  protocol::Refused operator()(A<protocol::Refused>) const {
    return {{in_.Rarely() ? static_cast<dtrun_status>(in_.Byte()) : DTRUN_SYSTEM, in_.Name()}};
  }
  protocol::Started operator()(A<protocol::Started>) const {
    protocol::Started started;
    for (std::size_t i = in_.Count(); i > 0; --i) started.pids.push_back(in_.Int());
    return started;
  }
  protocol::Output operator()(A<protocol::Output>) const {
    const int rank = Rank();
    const auto stream = in_.Coin() ? output::Stream::kOut : output::Stream::kErr;
    return {rank, stream, Keep(in_.Bytes(64))};
  }
  protocol::Ended operator()(A<protocol::Ended>) const {
    return {Rank(), AnEnding(in_), in_.Rarely() ? in_.Int() : 0};
  }
  protocol::Said operator()(A<protocol::Said>) const { return {in_.Name()}; }
  protocol::Logged operator()(A<protocol::Logged>) const { return {in_.Name()}; }
  protocol::Gone operator()(A<protocol::Gone>) const {
    protocol::Gone gone{in_.Name()};
    for (std::size_t i = in_.Count(); i > 0; --i)
      gone.looks.push_back({Rank(), 1u << in_.Below(8), in_.Bytes(40), in_.Int(), in_.Name(), in_.Int(),
                            in_.Name(), in_.Int()});
    return gone;
  }
  protocol::Asked operator()(A<protocol::Asked>) const { return {in_.Int()}; }
  protocol::Offered operator()(A<protocol::Offered>) const {
    return {{in_.Name(), SomeHosts(in_, hosts_), in_.Bytes(16)}};
  }
  protocol::MpiStarted operator()(A<protocol::MpiStarted>) const { return {Rank()}; }
  protocol::MpiFinished operator()(A<protocol::MpiFinished>) const { return {Rank()}; }
  protocol::MpiAborted operator()(A<protocol::MpiAborted>) const {
    return {Rank(), in_.Int(), in_.Name(), in_.Coin()};
  }
  protocol::MpiServerLost operator()(A<protocol::MpiServerLost>) const { return {in_.Name()}; }
  protocol::ClientOpened operator()(A<protocol::ClientOpened>) const { return {Client()}; }
  protocol::ClientData operator()(A<protocol::ClientData>) const { return {Client(), Keep(in_.Bytes(64))}; }
  protocol::ClientClosed operator()(A<protocol::ClientClosed>) const { return {Client()}; }
  protocol::Surveyed operator()(A<protocol::Surveyed>) const {
    protocol::Surveyed surveyed;
    for (std::size_t i = in_.Count(); i > 0; --i) surveyed.offer.candidates.push_back(ACandidate(in_, host_));
    for (std::size_t i = in_.Count(); i > 0; --i)
      surveyed.offer.left_out.push_back({in_.Name(), network::Kind::kBridge, in_.Name(), in_.Name()});
    surveyed.offer.has_rdma = in_.Coin();
    return surveyed;
  }
  protocol::ConnectivityChecked operator()(A<protocol::ConnectivityChecked>) const {
    protocol::ConnectivityChecked connected;
    for (std::size_t i = in_.Count(); i > 0; --i)
      connected.attempts.push_back({in_.Index(2), in_.Index(static_cast<std::size_t>(hosts_)), in_.Index(2),
                                    in_.Name(), std::chrono::nanoseconds(in_.Number())});
    return connected;
  }
  protocol::Measured operator()(A<protocol::Measured>) const {
    const double rates[] = {
        0, 1e9, 1e300, -1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
    return {{rates[in_.Below(6)], std::chrono::nanoseconds(in_.Number())}};
  }
  protocol::Called operator()(A<protocol::Called>) const { return SomeCalls(in_, 2 * host_, 2 * hosts_); }
  protocol::Differed operator()(A<protocol::Differed>) const {
    return {{in_.Byte(), in_.Index(4), in_.Index(4), in_.Name(), in_.Coin(), in_.Coin()}};
  }
  protocol::PreflightAnswered operator()(A<protocol::PreflightAnswered>) const {
    preflight::Answer answer;
    if (!in_.Coin()) answer.missing_modules = in_.Bytes(200);
    return {answer};
  }
  protocol::Lost operator()(A<protocol::Lost>) const { return {in_.Name(), in_.Coin()}; }
  protocol::RendezvousSeen operator()(A<protocol::RendezvousSeen>) const {
    return {in_.Coin(), {in_.Name()}, in_.Coin(), in_.Coin(), AnOverride()};
  }
  protocol::RankEnded operator()(A<protocol::RankEnded>) const { return {Rank(), in_.Int(), AnEnding(in_)}; }
  protocol::Traced operator()(A<protocol::Traced>) const { return {Rank(), Keep(in_.Bytes(64))}; }
  protocol::ClockRead operator()(A<protocol::ClockRead>) const {
    return {static_cast<std::uint32_t>(in_.Number()), static_cast<std::uint64_t>(in_.Number())};
  }
  protocol::Inspected operator()(A<protocol::Inspected>) const {
    protocol::Inspected inspected{static_cast<std::uint32_t>(in_.Number()), {}, in_.Byte()};
    for (std::size_t i = in_.Count(); i > 0; --i) {
      verdict::RankDoing& doing = inspected.ranks.emplace_back();
      doing.rank = Rank();
      doing.stand = static_cast<stacks::Stand>(in_.Below(8));
      doing.phrase = doing.beside = doing.text = in_.Name();
      doing.waits_for = Rank();
      doing.joins = in_.Coin();
      doing.overrides = AnOverride();
      doing.processor_ms = in_.Number();
      doing.bytes = in_.Number();
    }
    return inspected;
  }

 private:
  int Rank() const { return in_.Rarely() ? in_.Int() : 2 * host_ + static_cast<int>(in_.Below(2)); }
  std::vector<verdict::Override> AnOverride() const {
    if (in_.Coin()) return {};
    return {{Rank(), in_.Name(), in_.Name(), in_.Name()}};
  }
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
  return Encode(AnyOf<protocol::ToRoot>(in, events));
}

}  // namespace dtrun::fuzz
