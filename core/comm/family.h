// The communicators made from a world by splits and subsets: names and owns them.
//
// Owned by the runtime; ends before the world. Ranks meet through key-value spaces, so no backend needs to
// reach host memory for this. Any thread may call. A process creates and frees one communicator at a time, as
// the ABI's [control] requires, and creation waits for other ranks. Ranks with threads that create several
// communicators in different orders take turns.
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
  // A key-value space with that key prefix.
  using Spaces = std::function<std::unique_ptr<dtrun_kv>(std::string prefix)>;

  // `spaces` may be empty in a world of one.
  explicit Family(Spaces spaces) : spaces_(std::move(spaces)) {}
  // Ends communicators that were not freed, in reverse order of creation.
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  // Called on every rank of `parent`. Returns null for a negative color. The Nth split of the parent is named
  // parent.N:color.
  Result<dtrun_comm*> Split(dtrun_comm& parent, std::int32_t color, std::int32_t key);
  // Called by the members. Named parent.{ranks}, with #N for the Nth such subset.
  Result<dtrun_comm*> Subset(dtrun_comm& parent, std::span<const std::int32_t> ranks);
  // Ends a communicator of this family; ignores any other.
  void Free(dtrun_comm* comm);

 private:
  struct Member {
    std::unique_ptr<dtrun_kv> kv, device_kv, making_kv;  // outlive the communicator
    std::unique_ptr<dtrun_comm> comm;
  };

  // How often `name` was requested, including this time.
  int Count(const std::string& name);
  // Waits until all of `ranks` of `parent` have arrived to make `name`, then for this process's turn, which
  // lasts as long as the lock. Turns follow the order of world ranks, so no two processes wait for each
  // other.
  Result<std::unique_lock<std::mutex>> TakeTurn(const dtrun_comm& parent, std::string_view call,
                                                const std::string& name, const std::vector<int>& ranks);
  // Makes the communicator of `ranks` of `parent`, which run on `hosts`. REQUIRES TakeTurn.
  Result<dtrun_comm*> Make(dtrun_comm& parent, std::string name, const std::vector<int>& ranks,
                           const std::vector<int>& hosts);

  const Spaces spaces_;
  std::mutex names_;
  std::map<std::string, int> counts_;  // guarded by names_
  std::mutex control_;                 // held while a backend makes or ends a communicator
  std::vector<Member> members_;        // guarded by control_
};

}  // namespace dtrun::comm
