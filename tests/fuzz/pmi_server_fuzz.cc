// Fuzzes the servers of PMI with peers that are out of their mind: ranks that speak PMI-1 in any order, and a
// PMIx server process (dtrun-pmix) that tells the agent anything. Nothing crashes, no rank counts twice, and
// reports name only ranks of this host.
//
// The input is a script: the first byte chooses the server; for PMI-1 each line begins with the rank that
// says it.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/pmi/pmix_wire.h"
#include "core/pmi/server.h"
#include "tests/fuzz/target.h"

namespace pmi_servers_fuzz {

namespace pmi = dtrun::pmi;
using dtrun::Result;
using dtrun::UniqueFd;

constexpr int kRanks = 3;
using Variables = std::vector<std::map<std::string, std::string>>;

void Require(bool holds) {
  if (!holds) std::abort();
}

const pmi::Job& TheJob() {
  static const pmi::Job job{pmi::Kind::kPmi1, "job.0", {{"a", 0, 1}, {"b", 1, kRanks}}, 1};
  return job;
}

pmi::Events CheckingEvents(std::string* offered) {
  const auto here = [](int rank) { Require(rank >= 1 && rank <= kRanks); };
  pmi::Events events;
  events.offered = [offered](pmi::Part part) {
    for (const int host : part.hosts) Require(host == 0 || host == 1);
    *offered = part.exchange;
  };
  events.started = events.finished = here;
  events.aborted = [here](int rank, int, const std::string&) { here(rank); };
  events.broke = events.said = [here](int rank, const std::string&) { here(rank); };
  events.lost = [](const std::string&) {};
  return events;
}

void Run(boost::asio::io_context& loop) {
  loop.restart();
  loop.poll();
}

void Say(const UniqueFd& socket, std::string_view bytes) {
  [[maybe_unused]] const ssize_t size =
      ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Pmi1(std::string_view script) {
  boost::asio::io_context loop;
  std::string offered;
  int barriers = 0;
  pmi::Events events = CheckingEvents(&offered);
  const auto keep = events.offered;
  events.offered = [&](pmi::Part part) {
    ++barriers;
    keep(std::move(part));
  };
  const std::unique_ptr<pmi::Server> server = pmi::MakePmi1Server(loop, std::move(events));
  Require(server->Begin(TheJob()).ok());
  UniqueFd ranks[kRanks];
  for (int i = 0; i < kRanks; ++i) {
    Result<pmi::Admission> admission = server->Admit(i + 1);
    if (!admission) return;
    ranks[i] = std::move(admission->descriptor);
  }
  int entered[kRanks] = {};
  while (!script.empty()) {
    const std::size_t end = script.find('\n');
    std::string line(script.substr(0, end));
    script.remove_prefix(end == script.npos ? script.size() : end + 1);
    if (line.empty()) continue;
    const int rank = static_cast<unsigned char>(line[0]) % (kRanks + 1);
    line.erase(0, 1);
    if (rank == kRanks) {  // the other hosts have come, with what the line says
      server->Complete(offered,
                       line == "x" ? Result<std::string>(dtrun::Error{}) : Result<std::string>(line));
    } else {
      if (line.find("barrier_in") != line.npos) ++entered[rank];
      Say(ranks[rank], line + "\n");
    }
    Run(loop);
    char ignored[4096];
    for (const UniqueFd& one : ranks) {
      while (::recv(one.get(), ignored, sizeof ignored, MSG_DONTWAIT) > 0) {
      }
    }
  }
  for (const int times : entered) Require(barriers <= times);
}

struct Scratch {
  Scratch() {
    std::string name = "/tmp/dtrun-fuzz.XXXXXX";
    Require(::mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  ~Scratch() { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

void Pmix(std::string_view bytes) {
  static const Scratch scratch;
  boost::asio::io_context loop;
  std::string offered;
  UniqueFd far;
  const auto server =
      pmi::MakePmixServer(loop, {scratch.folder / "disk", scratch.folder / "memory"},
                          CheckingEvents(&offered), [&far]() -> Result<UniqueFd> {
                            int ends[2];
                            Require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
                            far = UniqueFd(ends[1]);
                            return UniqueFd(ends[0]);
                          });
  Require(server->Begin(TheJob()).ok());
  Say(far, pmi::Encode(pmi::FromPmix(pmi::PmixReady{Variables(kRanks, {{"A", "b"}})})));
  Require(server->Admit(1).ok());
  while (!bytes.empty()) {
    const std::size_t size =
        std::min<std::size_t>(bytes.size(), 1 + static_cast<unsigned char>(bytes[0]) % 64);
    Say(far, bytes.substr(0, size));
    bytes.remove_prefix(size);
    Run(loop);
    if (!offered.empty()) server->Complete(offered, std::string("parts"));
  }
  server->Look();
  server->End();
}

DTRUN_FUZZ_TARGET(pmi_servers)(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] == 'x' ? Pmix(rest) : Pmi1(rest);
  return 0;
}

}  // namespace pmi_servers_fuzz
