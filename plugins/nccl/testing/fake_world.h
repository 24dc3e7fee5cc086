// What the ranks of the fake NCCL share: which ranks have reached which call, and messages in flight.
//
// The last rank to reach a collective does the work for all, in memory, since all ranks are
// threads of one process. As with NCCL, calls of one communicator run one after another,
// whatever their streams; ungrouped sends wait for their receiver; ranks that disagree wait for
// ever; and an abort frees the own rank only. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plugins/nccl/nccl_abi.h"

namespace dtrun::nccl_fake {

namespace nccl = nccl_plugin::nccl;

enum class Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kAllToAll, kSend, kRecv };

struct Call {
  Kind kind;
  const void* send;
  void* recv;
  std::size_t count;
  nccl::DataType type;
  nccl::Reduction reduction;  // a built-in one
  bool scaled;                // send is multiplied by `scale` first
  double scale;
  int partner;  // root or peer; 0 where there is none
  void* stream;
};

// Bytes of a value.
std::size_t TypeBytes(nccl::DataType type);

// One rank's side. Its members belong to the world's lock.
struct Rank {
  int rank = 0;
  bool aborted = false;
  std::uint64_t next_launch = 0;      // numbers of batches: given out …
  std::uint64_t next_run = 0;         // … and allowed to run
  std::uint64_t next_collective = 0;  // its number on this communicator
};

class World {
 public:
  explicit World(int size) : size_(size) {}

  int size() const { return size_; }
  void Join();
  bool complete();
  void Abort(Rank& rank);
  // The number under which the next batch of `rank` runs.
  std::uint64_t Take(Rank& rank);
  // All batches given out have run.
  bool Idle(Rank& rank);
  // Runs a group of calls; returns when they are done or `rank` was aborted.
  void Run(Rank& rank, std::uint64_t number, const std::vector<Call>& calls);

 private:
  struct Round {
    std::map<int, const Call*> calls;  // by rank
    bool done = false;
  };
  struct Letter {
    const void* data;
    std::size_t bytes;
    bool taken = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void Collective(Rank& rank, const Call& call, Lock& lock);
  void Messages(Rank& rank, const std::vector<Call>& calls, Lock& lock);
  bool Agree(const Round& round) const;
  void Perform(const Round& round) const;

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int joined_ = 0;
  std::map<std::uint64_t, Round> rounds_;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> mail_;  // by sender and receiver
};

}  // namespace dtrun::nccl_fake
