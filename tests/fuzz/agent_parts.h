// What messages between root and agent are made of, by a fuzzer's choices: well formed, with numbers that may
// fit or not.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "core/contract/environment.h"
#include "core/protocol/messages.h"
#include "tests/fuzz/source.h"

namespace dtrun::fuzz {

inline network::Candidate ACandidate(Source& in, int host) {
  network::Candidate one;
  one.interface = in.Rarely() ? in.Name() : "eth0";
  one.index = in.Int();
  one.kind = static_cast<network::Kind>(in.Rarely() ? in.Byte() : in.Byte() % 8);
  const bool v6 = in.Rarely();
  const std::string last = std::to_string(host + 1);
  one.address.ip = dtrun::asio::ip::make_address(v6 ? "fd00::" + last
                                                    : "10.0." + std::to_string(in.Below(3)) + "." + last);
  one.address.prefix = in.Rarely() ? in.Int() : v6 ? 64 : 24;
  one.mtu = in.Rarely() ? in.Int() : 1500;
  one.speed_mbps = in.Rarely() ? in.Number() : 1000;
  one.port = static_cast<std::uint16_t>(in.Rarely() ? in.Int() : 1);
  return one;
}

inline process::Ending AnEnding(Source& in) {
  process::Ending ending;
  ending.code = in.Index(256);
  ending.signal = in.Int();
  ending.core_dumped = in.Coin();
  ending.out_of_memory = in.Rarely();
  ending.stopped_by = in.Rarely() ? in.Int() : 0;
  return ending;
}

inline contract::Window AWindow(Source& in, int first_rank, int world_size) {
  contract::Window window;
  window.communicator = in.Rarely() ? 0 : 1 + in.Below(3);
  window.name = in.Name();
  window.size = in.Rarely() ? in.Int() : world_size;
  for (std::size_t i = in.Count(); i > 0; --i) {
    const int rank = in.Rarely() ? in.Int() : first_rank + static_cast<int>(in.Below(2));
    window.members.push_back({rank, in.Rarely() ? in.Int() : rank});
  }
  window.freed = in.Rarely();
  if (in.Coin())
    window.idle =
        contract::Idle{static_cast<std::uint64_t>(in.Number()), static_cast<std::uint64_t>(in.Number())};
  for (std::size_t i = in.Count(); i > 0; --i) {
    sdk::Signature call;
    call.kind = in.Byte();
    call.dtype = in.Byte();
    call.reduce = in.Byte();
    call.root = in.Int();
    call.count = static_cast<std::uint64_t>(in.Number());
    window.calls.push_back({static_cast<std::uint64_t>(in.Number()), in.Byte(), call});
  }
  for (std::size_t i = in.Count(); i > 0; --i)
    window.checkpoints.emplace_back(in.Rarely() ? static_cast<std::uint64_t>(in.Number()) : 64 * in.Below(4),
                                    in.Byte());
  return window;
}

inline protocol::Called SomeCalls(Source& in, int first_rank, int world_size) {
  protocol::Called called;
  for (std::size_t i = 1 + in.Count(); i > 0; --i)
    called.windows.push_back(AWindow(in, first_rank, world_size));
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
    if (together) process.env[contract::kRankOutputs] = "1";
    processes.push_back(std::move(process));
  }
  return processes;
}

}  // namespace dtrun::fuzz
