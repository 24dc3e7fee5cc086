// The interface of PMI servers. Such a server lets an MPI library start in a host's ranks without mpirun: it
// provides their ranks and the addresses of the others.
//
// LocalHost owns one server per host and reuses it across generations; loop thread. Data between ranks of
// different hosts goes through an Exchange at the root.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/pmi/exchange.h"
#include "core/pmi/kind.h"
#include "core/wire/limits.h"

namespace dtrun::pmi {

struct JobHost {
  std::string name;
  int first_rank = 0;
  int local_size = 0;
  void Fields(auto& io) {
    io("name", name, wire::kMostName);
    io("first_rank", first_rank);
    io("local_size", local_size);
  }
};

// One generation of a job, as seen by an MPI library.
struct Job {
  Kind kind = Kind::kNone;
  std::string name;            // unique across jobs and generations
  std::vector<JobHost> hosts;  // in rank order
  int here = 0;                // index of this host
  void Fields(auto& io) {
    io("kind", kind, wire::Between{Kind::kNone, Kind::kPmi1});
    io("name", name, wire::kMostName);
    io("hosts", hosts, wire::kMostHosts);
    io("here", here);
  }

  int size() const { return hosts.back().first_rank + hosts.back().local_size; }
  const JobHost& host() const { return hosts[static_cast<std::size_t>(here)]; }
};

// The descriptor number at which a rank finds Admission::descriptor.
inline constexpr int kRankDescriptor = 3;

// Start parameters for a rank's process.
struct Admission {
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> defaults;  // used where nothing else is set
  UniqueFd descriptor;                          // becomes its kRankDescriptor; invalid: none
};

// Events from the ranks of this host.
struct Events {
  std::function<void(Part)> offered;
  std::function<void(int rank)> started;   // it began MPI_Init
  std::function<void(int rank)> finished;  // it called MPI_Finalize
  std::function<void(int rank, int code, const std::string& message)> aborted;
  std::function<void(int rank, const std::string& why)>
      broke;  // it violated the protocol and is no longer served
  std::function<void(int rank, const std::string& text)> said;  // an error message from the library
  std::function<void(const std::string& why)> lost;             // the server has stopped
};

class Server {
 public:
  virtual ~Server() = default;

  virtual Status Begin(const Job& job) = 0;
  // Call once for each rank of this host, before its process starts.
  virtual Result<Admission> Admit(int rank) = 0;
  // The answer to an offered part: all parts, concatenated in host order, or an error.
  virtual void Complete(const std::string& exchange, const Result<std::string>& all) = 0;
  // Reports pending events now: the end of a rank may be seen before its last events.
  virtual void Look() {}
  // The ranks are gone. Removes all traces of the job.
  virtual void End() = 0;
};

// Folders for the libraries' files: private to the job, created on demand, removed by others.
struct Folders {
  std::filesystem::path disk;
  std::filesystem::path memory;
};

// Starts the separate program that serves PMIx. Returns our end of the socket to it.
using StartPmix = std::function<Result<UniqueFd>()>;

// REQUIRES: `kind` is not kNone.
std::unique_ptr<Server> MakeServer(Kind kind, boost::asio::io_context& loop, Folders folders, Events events,
                                   StartPmix start);

// PMI-1 for the ranks of a host. Over a socket pair per rank, MPICH and its derivatives query their rank and
// put, get and exchange keys. Answers all requests of core/pmi/pmi1_wire.h; rejects spawn and name
// publishing.
std::unique_ptr<Server> MakePmi1Server(boost::asio::io_context& loop, Events events);

// "(vector,(0,2,4))": hosts 0 and 1 with 4 ranks each. MPICH derives from it which ranks share memory.
std::string ProcessMapping(const std::vector<JobHost>& hosts);

// PMIx for the ranks of a host, which Open MPI needs to start. libpmix listens on TCP and crashes on a
// malformed handshake, so it runs in its own process (dtrun-pmix, core/pmi/libpmix), one per generation. This
// server talks to that process over a socket pair and validates its messages against the job.
//
// `events.lost` is called if that process sends an invalid message, or, with an empty text, if it closes its
// end. The caller that started the process knows how it ended.
std::unique_ptr<Server> MakePmixServer(boost::asio::io_context& loop, Folders folders, Events events,
                                       StartPmix start);

}  // namespace dtrun::pmi
