#include "team.h"

#include "dtrun/plugin/names.hpp"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

// Freeing a communicator is local in practice; the standard would let it wait for others.
constexpr sdk::Nanoseconds kFreeing = std::chrono::seconds(2);

std::string RankText(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

Team::Team(const sdk::Host& host, const sdk::CommParams& params, World& world, CollSm coll_sm)
    : host_(host),
      health_(host),
      kv_(params.kv),
      world_(world),
      rank_(params.rank),
      size_(params.size),
      name_(params.name) {
  if (size_ > 1) joined_ = Join(host, params, world, coll_sm);
}

void Team::Leave(bool alone) {
  if (EntryBarrier* const place = entry()) place->Depart(Fate::kLeft, "");
  if (!alone || size_ == 1) return;
  joined_.processes = {};
  joined_.entry.reset();
  // What a failed communicator still has under way in MPI may use its handles.
  if (failure_ || world_.stuck() || !world_.usable()) return;
  const auto free_handles = [&world = world_, handles = joined_.handles]() mutable {
    std::unique_lock<std::timed_mutex> lock;
    if (world.gate() != nullptr) lock = std::unique_lock(*world.gate());
    if (handles.bulk != handles.main) world.api().comm_free(&handles.bulk);
    for (MPI_Comm* handle : {&handles.high, &handles.pieces, &handles.main}) world.api().comm_free(handle);
  };
  if (!world_.thread().Run(host_, free_handles, sdk::Deadline(kFreeing))) world_.SetStuck();
}

void Team::Fail(const Failure& failure, Fate fate) {
  sdk::Deadline::Clock::time_point never{};
  failed_at_.compare_exchange_strong(never, sdk::Deadline::Clock::now());  // before anybody sees a failure
  if (!failure_.Set(failure)) return;
  world_.SetShaken();
  const int culprit = failure.code() == DTRUN_REMOTE_FAILURE ? failure.peer() : -1;
  if (EntryBarrier* const place = entry()) place->Depart(fate, failure.what(), culprit);
}

void Team::CheckPeers(int needed) {
  if (failure_) return;
  if (const std::optional<Failure> trouble = FindTrouble(needed)) {
    Fail(*trouble, trouble->code() == DTRUN_ABORTED ? Fate::kAborted : Fate::kFailed);
  }
}

std::optional<Failure> Team::FindTrouble(int needed) {
  EntryBarrier* const place = entry();
  if (place == nullptr) return std::nullopt;
  if (const auto departure = place->FindDeparture()) {
    const int peer = departure->rank;
    switch (departure->fate) {
      case Fate::kAborted: return Failure(DTRUN_ABORTED, RankText(peer) + ": " + departure->reason, peer);
      case Fate::kFailed:
        return Failure(DTRUN_REMOTE_FAILURE,
                       RankText(peer) + " gave '" + name_ + "' up: " + departure->reason,
                       departure->culprit >= 0 && departure->culprit != rank_ ? departure->culprit : peer);
      default: break;
    }
    if (needed == kAll)
      return Failure(DTRUN_REMOTE_FAILURE, RankText(peer) + " has left '" + name_ + "'", peer);
    if (needed >= 0 && place->FateOf(needed) == Fate::kLeft)
      return Failure(DTRUN_REMOTE_FAILURE, RankText(needed) + " has left '" + name_ + "'", needed);
    if (needed == kEverybody && AllLeft())
      return Failure(DTRUN_REMOTE_FAILURE, "all other ranks have left '" + name_ + "'", peer);
  }
  if (const auto dead = FindDeadRank()) {
    const std::string what = "the process of " + RankText(*dead) + " is gone";
    health_.ReportPeer(kv_, *dead, what);
    return Failure(DTRUN_REMOTE_FAILURE, what + "; look at its log and at the verdict of the job", *dead);
  }
  return std::nullopt;
}

bool Team::AllLeft() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && joined_.entry->FateOf(rank) != Fate::kLeft) return false;
  }
  return true;
}

std::optional<int> Team::FindDeadRank() const {
  for (const int rank : joined_.processes.Ended()) {
    // Who leaves says so before its process ends.
    if (joined_.entry->FateOf(rank) == Fate::kMember) return rank;
  }
  return std::nullopt;
}

std::string Team::MissingRanks(std::uint64_t call, int* first) {
  *first = -1;
  std::string text;
  EntryBarrier* const place = entry();
  if (place == nullptr) return text;
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint64_t last = place->CallOf(rank);
    if (rank == rank_ || last >= call) continue;
    if (*first < 0) *first = rank;
    text += (text.empty() ? "" : ", ") + RankText(rank) + " (";
    text += last == 0 ? "has made no collective call)"
                      : "its last is " + std::string(sdk::OperationName(place->SignatureOf(rank).kind)) +
                            " " + std::to_string(last) + ")";
  }
  return text;
}

}  // namespace dtrun::mpi_plugin
