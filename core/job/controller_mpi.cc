// The controller's MPI events: from PMI servers, and about ranks below an mpirun.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/contract/environment.h"
#include "core/job/controller.h"

namespace dtrun::job {
namespace {

bool WasAskedToEnd(const process::Ending& ending) {
  return ending.signal == SIGTERM || ending.signal == SIGKILL;
}

}  // namespace

void Controller::On(std::size_t, const protocol::RankEnded& ended) {
  const int index = IndexOf(ended.rank);
  if (index < 0 || !ended.ending.failed()) return;
  const bool running = phase_ == Phase::kRunning;
  if (!running && (WasAskedToEnd(ended.ending) || !MayBeMistaken())) return;
  verdict::RankFacts& process = facts_.ranks[static_cast<std::size_t>(index)];
  process.failed = verdict::RankFacts::Inner{ended.rank, ended.pid, ended.ending};
  if (process.ending) process.ending = ended.ending;
  process.signal_sent = 0;
  process.ended_at = Clock::now() - begin_;
  facts_.first_failed = index;
  if (running) FailedFirst(static_cast<std::size_t>(index));
}

// An mpirun ends all ranks because of one, and exits with that rank's code. Other hosts may see this before
// the report of the rank's own end arrives.
bool Controller::MayBeMistaken() const {
  if (facts_.first_failed < 0) return false;
  const auto index = static_cast<std::size_t>(facts_.first_failed);
  const verdict::RankFacts& first = facts_.ranks[index];
  if (first.failed) return WasAskedToEnd(first.failed->ending);
  return plan_.processes[index].env.contains(contract::kRankOutputs) && first.ending &&
         first.ending->signal == 0;
}

void Controller::On(std::size_t host, const protocol::Offered& offered) {
  exchange_.Offer(static_cast<int>(host), offered.part);
}

void Controller::On(std::size_t, const protocol::MpiStarted& started) {
  have_joined_ = true;
  const int index = IndexOf(started.rank);
  if (index < 0) return;
  facts_.ranks[static_cast<std::size_t>(index)].mpi = verdict::RankFacts::Mpi::kStarted;
  if (phase_ != Phase::kRunning) return;
  for (std::size_t i = 0; i < facts_.ranks.size(); ++i) {
    verdict::RankFacts& rank = facts_.ranks[i];
    if (!rank.ending) continue;  // failed ranks have already ended the job
    rank.ending->early_exit = EarlyExitOf(rank);
    if (rank.ending->failed()) return FailedFirst(i);
  }
}

void Controller::On(std::size_t, const protocol::MpiFinished& finished) {
  const int index = IndexOf(finished.rank);
  if (index >= 0) facts_.ranks[static_cast<std::size_t>(index)].mpi = verdict::RankFacts::Mpi::kFinished;
}

// The rank may not exit by itself: MPICH's ranks wait to be killed.
void Controller::On(std::size_t, const protocol::MpiAborted& aborted) {
  const int index = IndexOf(aborted.rank);
  if (index < 0 || phase_ != Phase::kRunning) return;
  verdict::RankFacts& rank = facts_.ranks[static_cast<std::size_t>(index)];
  rank.abort = verdict::MpiAbort{aborted.code, aborted.message, aborted.broke};
  rank.ended_at = Clock::now() - begin_;
  FailedFirst(static_cast<std::size_t>(index));
}

// Ranks need the server from MPI_Init to the end of MPI_Finalize: both are fences of all ranks. Ranks that
// have not called MPI_Init may never do so.
void Controller::On(std::size_t host, const protocol::MpiServerLost& lost) {
  if (phase_ != Phase::kRunning) return;
  verdict::MpiServerLoss loss{members_[host].name, lost.how, {}, Clock::now() - begin_};
  bool all_over = true;
  for (const verdict::RankFacts& rank : facts_.ranks) {
    if (rank.ending) continue;
    if (rank.mpi == verdict::RankFacts::Mpi::kStarted) loss.needed.push_back(rank.rank);
    if (rank.mpi == verdict::RankFacts::Mpi::kNone) all_over = false;
  }
  if (loss.needed.empty()) {
    return say_(fmt::format("dtrun: warning: the PMIx server of host {} {}; {}", loss.host, loss.how,
                            all_over ? "all ranks have finished with MPI, so the job continues"
                                     : "the job continues, but ranks that call MPI_Init from now on fail"));
  }
  facts_.mpi_server_loss = std::move(loss);
  StopAll(SIGTERM);
}

process::EarlyExit Controller::EarlyExitOf(const verdict::RankFacts& rank) const {
  if (rank.mpi == verdict::RankFacts::Mpi::kStarted) return process::EarlyExit::kBeforeFinalize;
  const bool needed = std::ranges::any_of(facts_.ranks, [](const verdict::RankFacts& other) {
    return other.mpi != verdict::RankFacts::Mpi::kNone;
  });
  return needed && rank.mpi == verdict::RankFacts::Mpi::kNone ? process::EarlyExit::kBeforeInit
                                                              : process::EarlyExit::kNone;
}

}  // namespace dtrun::job
