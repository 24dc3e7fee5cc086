// Messages between root and agent, made of a fuzzer's choices: each well formed, with numbers that may fit
// or not.
#pragma once

#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "core/agent/messages.h"
#include "core/plan/dialect.h"
#include "tests/fuzz/source.h"

namespace dtrun::fuzz {

inline net::Candidate ACandidate(Source& in, int host) {
  net::Candidate one;
  one.interface = in.Rarely() ? in.Name() : "eth0";
  one.index = in.Int();
  one.kind = static_cast<net::Kind>(in.Rarely() ? in.Byte() : in.Byte() % 8);
  const bool v6 = in.Rarely();
  const std::string last = std::to_string(host + 1);
  one.address.ip =
      net::asio::ip::make_address(v6 ? "fd00::" + last : "10.0." + std::to_string(in.Below(3)) + "." + last);
  one.address.prefix = in.Rarely() ? in.Int() : v6 ? 64 : 24;
  one.mtu = in.Rarely() ? in.Int() : 1500;
  one.speed_mbps = in.Rarely() ? in.Number() : 1000;
  one.port = static_cast<std::uint16_t>(in.Rarely() ? in.Int() : 1);
  return one;
}

inline agent::Ending AnEnding(Source& in) {
  agent::Ending ending;
  ending.code = in.Index(256);
  ending.signal = in.Int();
  ending.core_dumped = in.Coin();
  ending.out_of_memory = in.Rarely();
  ending.stopped_by = in.Rarely() ? in.Int() : 0;
  return ending;
}

inline comm::Excerpt AnExcerpt(Source& in, int first_rank, int world_size) {
  comm::Excerpt excerpt;
  excerpt.communicator = in.Rarely() ? 0 : 1 + in.Below(3);
  excerpt.name = in.Name();
  excerpt.size = in.Rarely() ? in.Int() : world_size;
  for (std::size_t i = in.Count(); i > 0; --i) {
    const int rank = in.Rarely() ? in.Int() : first_rank + static_cast<int>(in.Below(2));
    excerpt.members.push_back({rank, in.Rarely() ? in.Int() : rank});
  }
  excerpt.freed = in.Rarely();
  if (in.Coin())
    excerpt.rest =
        comm::Rest{static_cast<std::uint64_t>(in.Number()), static_cast<std::uint64_t>(in.Number())};
  for (std::size_t i = in.Count(); i > 0; --i) {
    comm::Call call;
    call.kind = in.Byte();
    call.dtype = in.Byte();
    call.reduce = in.Byte();
    call.root = in.Int();
    call.count = static_cast<std::uint64_t>(in.Number());
    excerpt.calls.push_back({static_cast<std::uint64_t>(in.Number()), in.Byte(), call});
  }
  for (std::size_t i = in.Count(); i > 0; --i)
    excerpt.checkpoints.emplace_back(in.Rarely() ? static_cast<std::uint64_t>(in.Number()) : 64 * in.Below(4),
                                     in.Byte());
  return excerpt;
}

inline agent::Called SomeCalls(Source& in, int first_rank, int world_size) {
  agent::Called called;
  for (std::size_t i = 1 + in.Count(); i > 0; --i)
    called.excerpts.push_back(AnExcerpt(in, first_rank, world_size));
  return called;
}

inline std::vector<int> SomeHosts(Source& in, int hosts) {
  std::vector<int> some;
  if (in.Coin()) {
    for (int i = 0; i < hosts; ++i) some.push_back(i);
  } else {
    for (std::size_t i = in.Count(); i > 0; --i) some.push_back(in.Index(4));
  }
  return some;
}

inline agent::Inspected AnInspection(Source& in, int first_rank) {
  agent::Inspected inspected{static_cast<std::uint32_t>(in.Number()), {}, in.Byte()};
  for (std::size_t i = in.Count(); i > 0; --i) {
    agent::RankDoing& doing = inspected.ranks.emplace_back();
    doing.rank = in.Rarely() ? in.Int() : first_rank + static_cast<int>(in.Below(2));
    doing.stand = static_cast<stacks::Stand>(in.Below(8));
    doing.phrase = doing.text = in.Name();
    doing.processor_ms = in.Number();
    doing.bytes = in.Number();
  }
  return inspected;
}

// Of the agent of `host`, each of whose hosts has two ranks.
inline agent::ToRoot AnEvent(Source& in, int host, int hosts) {
  using namespace agent;
  const int first = 2 * host;
  const auto rank = [&] { return in.Rarely() ? in.Int() : first + static_cast<int>(in.Below(2)); };
  static std::string bytes;  // views point into it
  switch (in.Below(25)) {
    case 0: return Introduction{in.Name(), in.Name(), in.Coin() ? "0.0=0,1" : in.Bytes(40), {}};
    case 1: {
      Prepared prepared{in.Int(), {}, "/s", "/r"};
      for (std::size_t i = in.Count(); i > 0; --i) prepared.task_ports.emplace_back(rank(), in.Int());
      return prepared;
    }
    case 2: return Refused{{in.Rarely() ? static_cast<dtrun_status>(in.Byte()) : DTRUN_SYSTEM, in.Name()}};
    case 3: {
      Started started;
      for (std::size_t i = in.Count(); i > 0; --i) started.pids.push_back(in.Int());
      return started;
    }
    case 4:
      bytes = in.Bytes(64);
      return Output{rank(), in.Coin() ? output::Stream::kOut : output::Stream::kErr, bytes};
    case 5: return Ended{rank(), AnEnding(in), in.Rarely() ? in.Int() : 0};
    case 6: return Said{in.Name()};
    case 7: return Gone{in.Name()};
    case 8: return Asked{in.Int()};
    case 9: return Offered{{in.Name(), SomeHosts(in, hosts), in.Bytes(16)}};
    case 10: return MpiStarted{rank()};
    case 11: return MpiFinished{rank()};
    case 12: return MpiAborted{rank(), in.Int(), in.Name()};
    case 13: return ClientOpened{static_cast<std::uint32_t>(in.Int())};
    case 14: bytes = in.Bytes(64); return ClientData{static_cast<std::uint32_t>(in.Int()), bytes};
    case 15: return ClientClosed{static_cast<std::uint32_t>(in.Int())};
    case 16: {
      Surveyed surveyed;
      for (std::size_t i = in.Count(); i > 0; --i) surveyed.offer.candidates.push_back(ACandidate(in, host));
      for (std::size_t i = in.Count(); i > 0; --i)
        surveyed.offer.left_out.push_back({in.Name(), net::Kind::kBridge, in.Name(), in.Name()});
      surveyed.offer.has_rdma = in.Coin();
      return surveyed;
    }
    case 17: {
      Proven proven;
      for (std::size_t i = in.Count(); i > 0; --i)
        proven.attempts.push_back({in.Index(2), in.Index(static_cast<std::size_t>(hosts)), in.Index(2),
                                   in.Name(), std::chrono::nanoseconds(in.Number())});
      return proven;
    }
    case 18: {
      const double rates[] = {0,
                              1e9,
                              1e300,
                              -1,
                              std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity()};
      return Measured{{rates[in.Below(6)], std::chrono::nanoseconds(in.Number())}};
    }
    case 19: return SomeCalls(in, first, 2 * hosts);
    case 20: return Differed{{in.Byte(), in.Index(4), in.Index(4), in.Name(), in.Coin(), in.Coin()}};
    case 21: return Examined{in.Coin() ? R"({"backends":[],"checks":[],"clock_seconds":0})" : in.Bytes(200)};
    case 22: return Lost{in.Name(), in.Coin()};
    case 23: return Looked{in.Rarely(), {in.Name()}, in.Coin()};
    default:
      if (in.Rarely()) return AnInspection(in, first);
      if (in.Rarely()) return MpiServerLost{in.Name()};
      return RankEnded{rank(), in.Int(), AnEnding(in)};
  }
}

// The two ranks of a host, in two processes or in one that prints for both.
inline std::vector<plan::Process> ProcessesOf(int host, bool together) {
  std::vector<plan::Process> processes;
  for (int i = 0; i < (together ? 1 : 2); ++i) {
    plan::Process process;
    process.host = host;
    process.rank = 2 * host + i;
    process.local_rank = i;
    process.rank_count = together ? 2 : 1;
    process.argv = {"/bin/true"};
    process.cwd = "/";
    if (together) process.env[dialect::kRankOutputs] = "1";
    processes.push_back(std::move(process));
  }
  return processes;
}

}  // namespace dtrun::fuzz
