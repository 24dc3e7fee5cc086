// What a host serves its ranks so that an MPI library starts in them without mpirun: who they
// are, and a way to learn the addresses of the others.
//
// One server per host, owned by LocalHost, used for one generation after another; loop thread.
// What the ranks of several hosts tell each other passes through an Exchange at the root.
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

namespace dtrun::pmi {

struct JobHost {
  std::string name;
  int first_rank = 0;
  int local_size = 0;
};

// One generation of a job, as an MPI library sees it.
struct Job {
  Kind kind = Kind::kNone;
  std::string name;            // unlike that of any other job or generation
  std::vector<JobHost> hosts;  // in the order of ranks
  int here = 0;                // index of this host

  int size() const { return hosts.back().first_rank + hosts.back().local_size; }
  const JobHost& host() const { return hosts[static_cast<std::size_t>(here)]; }
};

// The descriptor that a rank finds what Admission::descriptor was.
inline constexpr int kRankDescriptor = 3;

// What the process of a rank is started with.
struct Admission {
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> defaults;  // where nothing else is set
  UniqueFd descriptor;                          // to be its kRankDescriptor; invalid: none
};

// From the ranks of this host.
struct Events {
  std::function<void(Part)> offered;
  std::function<void(int rank)> started;   // it has begun MPI_Init
  std::function<void(int rank)> finished;  // it has called MPI_Finalize
  std::function<void(int rank, int code, const std::string& message)> aborted;
  std::function<void(int rank, const std::string& why)>
      broke;  // what it says makes no sense; it is served no more
  std::function<void(int rank, const std::string& text)> said;  // an error message of the library
  std::function<void(const std::string& why)> lost;             // the server serves no more
};

class Server {
 public:
  virtual ~Server() = default;

  virtual Status Begin(const Job& job) = 0;
  // Once for each rank of this host, before its process starts.
  virtual Result<Admission> Admit(int rank) = 0;
  // The answer to an offered part: all parts, one after the other by host, or why there are none.
  virtual void Complete(const std::string& exchange, const Result<std::string>& all) = 0;
  // Tells now what ranks have done so far: one that ends may be seen before what it did last.
  virtual void Look() {}
  // The ranks are gone. Nothing of the job is left here.
  virtual void End() = 0;
};

// Where files of libraries may lie: private to the job, made when needed, removed by others.
struct Folders {
  std::filesystem::path disk;
  std::filesystem::path memory;
};

// Starts the program that serves PMIx apart from this process; our end of the socket to it.
using StartPmix = std::function<Result<UniqueFd>()>;

// REQUIRES: `kind` is not kNone.
std::unique_ptr<Server> MakeServer(Kind kind, boost::asio::io_context& loop, Folders folders, Events events,
                                   StartPmix start);

}  // namespace dtrun::pmi
