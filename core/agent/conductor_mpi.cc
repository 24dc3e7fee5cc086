// What the conductor hears of MPI: of the servers that libraries start by, and of ranks below an mpirun.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/agent/conductor.h"
#include "core/plan/dialect.h"

namespace dtrun::agent {
namespace {

bool WasAskedToEnd(const Ending& ending) { return ending.signal == SIGTERM || ending.signal == SIGKILL; }

}  // namespace

void Conductor::On(std::size_t, const RankEnded& ended) {
  const int index = IndexOf(ended.rank);
  if (index < 0 || !ended.ending.failed()) return;
  const bool running = phase_ == Phase::kRunning;
  if (!running && (WasAskedToEnd(ended.ending) || !MayBeMistaken())) return;
  RankFacts& process = facts_.ranks[static_cast<std::size_t>(index)];
  process.failed = RankFacts::Inner{ended.rank, ended.pid, ended.ending};
  if (process.ending) process.ending = ended.ending;
  process.signal_sent = 0;
  process.ended_at = Clock::now() - begin_;
  facts_.first_failed = index;
  if (running) FailedFirst(static_cast<std::size_t>(index));
}

// An mpirun ends ranks because of one of them, and itself with that one's code; on other hosts that may be
// seen before the rank's own end is heard of.
bool Conductor::MayBeMistaken() const {
  if (facts_.first_failed < 0) return false;
  const auto index = static_cast<std::size_t>(facts_.first_failed);
  const RankFacts& first = facts_.ranks[index];
  if (first.failed) return WasAskedToEnd(first.failed->ending);
  return plan_.processes[index].env.contains(dialect::kRankOutputs) && first.ending &&
         first.ending->signal == 0;
}

void Conductor::On(std::size_t host, const Offered& offered) {
  exchange_.Offer(static_cast<int>(host), offered.part);
}

void Conductor::On(std::size_t, const MpiStarted& started) {
  have_joined_ = true;
  const int index = IndexOf(started.rank);
  if (index < 0) return;
  facts_.ranks[static_cast<std::size_t>(index)].mpi = RankFacts::Mpi::kStarted;
  if (phase_ != Phase::kRunning) return;
  for (std::size_t i = 0; i < facts_.ranks.size(); ++i) {
    RankFacts& rank = facts_.ranks[i];
    if (!rank.ending) continue;  // those that failed have ended the job already
    rank.ending->desertion = DesertionOf(rank);
    if (rank.ending->failed()) return FailedFirst(i);
  }
}

void Conductor::On(std::size_t, const MpiFinished& finished) {
  const int index = IndexOf(finished.rank);
  if (index >= 0) facts_.ranks[static_cast<std::size_t>(index)].mpi = RankFacts::Mpi::kFinished;
}

// The rank need not end by itself: MPICH's wait to be killed.
void Conductor::On(std::size_t, const MpiAborted& aborted) {
  const int index = IndexOf(aborted.rank);
  if (index < 0 || phase_ != Phase::kRunning) return;
  RankFacts& rank = facts_.ranks[static_cast<std::size_t>(index)];
  rank.abort = MpiAbort{aborted.code, aborted.message, aborted.broke};
  rank.ended_at = Clock::now() - begin_;
  FailedFirst(static_cast<std::size_t>(index));
}

// Ranks need it from MPI_Init to the end of MPI_Finalize: both are fences of all. Those that have not come to
// MPI_Init may never come.
void Conductor::On(std::size_t host, const MpiServerLost& lost) {
  if (phase_ != Phase::kRunning) return;
  MpiServerLoss loss{members_[host].name, lost.how, {}, Clock::now() - begin_};
  bool all_over = true;
  for (const RankFacts& rank : facts_.ranks) {
    if (rank.ending) continue;
    if (rank.mpi == RankFacts::Mpi::kStarted) loss.needed.push_back(rank.rank);
    if (rank.mpi == RankFacts::Mpi::kNone) all_over = false;
  }
  if (loss.needed.empty()) {
    return say_(fmt::format("dtrun: warning: the PMIx server of host {} {}; {}", loss.host, loss.how,
                            all_over ? "all ranks have finished with MPI, so the job goes on"
                                     : "the job goes on, but ranks that call MPI_Init from now on fail"));
  }
  facts_.mpi_server_loss = std::move(loss);
  StopAll(SIGTERM);
}

Desertion Conductor::DesertionOf(const RankFacts& rank) const {
  if (rank.mpi == RankFacts::Mpi::kStarted) return Desertion::kBeforeFinalize;
  const bool needed = std::ranges::any_of(
      facts_.ranks, [](const RankFacts& other) { return other.mpi != RankFacts::Mpi::kNone; });
  return needed && rank.mpi == RankFacts::Mpi::kNone ? Desertion::kBeforeInit : Desertion::kNone;
}

}  // namespace dtrun::agent
