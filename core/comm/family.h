// The communicators made from a world: splits and subsets, their names and their owner.
//
// Owned by the runtime; ends before the world. Ranks meet through key-value spaces, so that
// no backend needs to reach host memory for it. Any thread may call. Making and freeing run
// one at a time in a process, as the ABI's [control] asks, and making waits for other ranks:
// ranks whose threads make several communicators in different orders take turns.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"
#include "core/plugin/host.h"

namespace dtrun::comm {

class Family {
 public:
  // A key-value space whose keys begin with the prefix.
  using Spaces = std::function<std::unique_ptr<dtrun_kv>(std::string prefix)>;

  // `spaces` may be empty in a world of one.
  explicit Family(Spaces spaces) : spaces_(std::move(spaces)) {}
  // Ends what was not freed, the last made first.
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  // Called by every rank of `parent`. Null for a negative color. Named parent.N:color, where
  // this is the Nth split of the parent.
  Result<dtrun_comm*> Split(dtrun_comm& parent, std::int32_t color, std::int32_t key);
  // Called by the members. Named parent.{ranks}, and #N when it is the Nth such.
  Result<dtrun_comm*> Subset(dtrun_comm& parent, std::span<const std::int32_t> ranks);
  // Ends one of them; leaves any other communicator alone.
  void Free(dtrun_comm* comm);

 private:
  struct Member {
    std::unique_ptr<dtrun_kv> kv, device_kv, making_kv;  // outlive the communicator
    std::unique_ptr<dtrun_comm> comm;
  };

  // How often `name` was asked for, this time included.
  int Count(const std::string& name);
  // Waits until all of `ranks` of `parent` have come to make `name`, and then for the turn of this process,
  // which lasts as long as the lock. Turns are taken in the order of the world's ranks, so no two wait for
  // each other.
  Result<std::unique_lock<std::mutex>> TakeTurn(const dtrun_comm& parent, std::string_view call,
                                                const std::string& name, const std::vector<int>& ranks);
  // Makes the communicator of `ranks` of `parent`, which live on `hosts`. REQUIRES: the turn was taken
  Result<dtrun_comm*> Make(dtrun_comm& parent, std::string name, const std::vector<int>& ranks,
                           const std::vector<int>& hosts);

  const Spaces spaces_;
  std::mutex names_;
  std::map<std::string, int> counts_;  // guarded by names_
  std::mutex control_;                 // held while a backend makes or ends a communicator
  std::vector<Member> members_;        // guarded by control_
};

}  // namespace dtrun::comm
