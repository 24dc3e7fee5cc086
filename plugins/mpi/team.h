// What all parts of a communicator share: its place in MPI, the page its ranks meet on, and
// the first failure, which ends it.
//
// Outlives the communicator when a thread is left behind in MPI. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"
#include "dtrun/plugin/process_watch.hpp"
#include "entry_barrier.h"
#include "world.h"

namespace dtrun::mpi_plugin {

// Several contexts, so that the plugin's own messages never meet the user's: MPI's collectives;
// the pieces that collectives are made of here; messages with the uppermost bit of the tag set.
// Other messages share a context with MPI's collectives, which MPI keeps apart.
struct Handles {
  MPI_Comm main;
  MPI_Comm pieces;
  MPI_Comm high;
  MPI_Comm bulk;  // for kBulk bytes and more: of Open MPI's shared-memory collectives, or main
};

struct Joined {
  Handles handles;
  std::unique_ptr<EntryBarrier> entry;  // null where ranks share no memory
  sdk::ProcessWatch processes;          // of the other ranks; none without an entry barrier
};

// The ranks find each other: in the key-value space, in MPI, and on the page that they share. REQUIRES
// params.size > 1. Throws when a rank does not come before params.timeout has
// passed, and when the processes are not those of one MPI job.
Joined Join(const sdk::Host& host, const sdk::CommParams& params, World& world, CollSm coll_sm);

class Team {
 public:
  // Makes the communicator together with the other ranks. One of a single rank needs no MPI.
  Team(const sdk::Host& host, const sdk::CommParams& params, World& world, CollSm coll_sm);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  const std::string& name() const { return members_.name(); }
  World& world() { return world_; }
  const Api& api() const { return world_.api(); }
  const Handles& handles() const { return joined_.handles; }
  // Null when ranks share no memory.
  EntryBarrier* entry() { return joined_.entry.get(); }

  // The first failure stays, is told to the other ranks and thrown by every later call.
  void Fail(const sdk::Failure& failure, Fate fate = Fate::kFailed);
  const sdk::FirstFailure& failure() const { return failure_; }
  // REQUIRES a failure. What is in MPI then gets a little time to come out.
  sdk::Deadline::Clock::time_point failed_at() const { return failed_at_; }

  // Fails the team when another rank has failed or died, or when those that are needed have
  // left: one rank, or any of all, or everybody else. Where ranks share no memory, asks the store now and
  // then.
  static constexpr int kAll = -2;
  static constexpr int kNoPeer = -1;
  static constexpr int kEveryPeer = -3;
  // `call`: of kAll, the number of the collective: a rank that left after it has done its part.
  void CheckPeers(int needed, std::uint64_t call = 0);
  // This rank makes no more calls, after `calls` collectives. Once. `alone`: no thread is left behind, so
  // that everything can be given back.
  void Leave(bool alone, std::uint64_t calls);
  // "rank 1, which is in barrier 6": the ranks that have not reached collective `call`. Empty when that
  // is not known; *first is the first of them or -1.
  std::string MissingRanks(std::uint64_t call, int* first);

 private:
  std::optional<sdk::Failure> FindTrouble(int needed, std::uint64_t call);
  std::optional<sdk::Failure> AskStore(int needed, std::uint64_t call);
  void TellStore(const std::function<void()>& tell) noexcept;
  bool AllLeft() const;
  std::optional<int> FindDeadRank() const;

  const sdk::Host host_;
  const sdk::Health health_;
  const sdk::Membership members_;
  World& world_;
  Joined joined_{};
  std::atomic<sdk::Deadline::Clock::time_point> next_question_{};  // to the store
  std::atomic<int> left_{-1};  // a needed rank that had left when the store was asked last

  sdk::FirstFailure failure_;
  std::atomic<sdk::Deadline::Clock::time_point> failed_at_{};
};

}  // namespace dtrun::mpi_plugin
