// What the ranks of one communicator tell one another through its key-value space: who is
// there, NCCL's unique id, who failed, who left, who waits in which call.
//
// NCCL itself names nobody: a rank that is gone makes the others' kernels spin. The data path
// writes nothing here; a rank writes when it has waited long, when it fails and when it leaves.
// Owned by the communicator; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dtrun/plugin.hpp"
#include "nccl_abi.h"

namespace dtrun::nccl_plugin {

// How far a rank has come: calls that it has started.
struct Progress {
  std::uint64_t collective = 0;           // sequence number of the last one
  std::map<int, std::uint64_t> messages;  // to and from each peer

  std::string Encode() const;
  static Progress Decode(const std::string& text);
};

class Gathering {
 public:
  explicit Gathering(const sdk::CommParams& params);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }

  // Says that this rank is there, with the reason why it cannot take part if there is one, and
  // waits for all others. Throws a failure that names who does not come or cannot.
  void Meet(const std::optional<sdk::Failure>& obstacle, const sdk::Deadline& deadline) const;

  // Rank 0 tells the others the id, or why there is none.
  void PublishId(const nccl::UniqueId& id) const;
  void PublishNoId(const sdk::Failure& why) const;
  nccl::UniqueId FetchId(const sdk::Deadline& deadline) const;

  // Tells the others of this rank's failure; the first of the communicator is kept.
  void AnnounceFailure(const sdk::Failure& cause) const;
  // The announced failure as this rank sees it; nullopt when there is none or it is its own.
  std::optional<sdk::Failure> FailureOfAnother() const;

  void AnnounceLeaving(const Progress& progress) const;
  // The ranks that left and how far they had come; [rank, progress].
  std::vector<std::pair<int, Progress>> Departed() const;

  // Says that this rank waits in collective `sequence`.
  void AnnounceWaiting(std::uint64_t sequence) const;
  // Ranks that have not said so.
  std::vector<int> NotWaitingIn(std::uint64_t sequence) const;

 private:
  const sdk::Kv kv_;
  const int rank_;
  const int size_;
  const std::string name_;
};

// "rank 1", "ranks 1, 4 and 7", "ranks 1, 2, 3, 4 and 59 more".
std::string RanksText(const std::vector<int>& ranks);

}  // namespace dtrun::nccl_plugin
