#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/contract/environment.h"
#include "core/observe/observer.h"
#include "core/pmi/exchange.h"

namespace dtrun::observe {
namespace {

using Mpi = verdict::RankFacts::Mpi;
using Then = Finding::Then;

bool WasAskedToEnd(const process::Ending& ending) {
  return ending.signal == SIGTERM || ending.signal == SIGKILL;
}

// Whether the known cause is less certain than the end of a rank that may be reported late. An mpirun ends
// all ranks because of one, and exits with that rank's code. Other hosts may see this before the report of
// the rank's own end arrives.
bool MayBeMistaken(const View& view) {
  if (view.facts.first_failed < 0) return false;
  const auto index = static_cast<std::size_t>(view.facts.first_failed);
  const verdict::RankFacts& first = view.facts.ranks[index];
  if (first.failed) return WasAskedToEnd(first.failed->ending);
  return view.plan.processes[index].env.contains(contract::kRankOutputs) && first.ending &&
         first.ending->signal == 0;
}

class MpiObserver final : public Observer {
 public:
  explicit MpiObserver(std::function<void(int host, const protocol::Exchanged&)> answer)
      : exchange_([answer = std::move(answer)](int host, const std::string& exchange,
                                               const Result<std::string>& all) {
          answer(host, all ? protocol::Exchanged{exchange, "", *all}
                           : protocol::Exchanged{exchange, all.error().text, ""});
        }) {}

  Finding On(const View& view, std::size_t host, const protocol::Event& event) override {
    if (const auto* const offered = std::get_if<protocol::Offered>(&event))
      exchange_.Offer(static_cast<int>(host), offered->part);
    if (const auto* const started = std::get_if<protocol::MpiStarted>(&event))
      return Started(view, started->rank);
    if (const auto* const finished = std::get_if<protocol::MpiFinished>(&event))
      return {{fact::MpiFinished{{finished->rank}}}};
    if (const auto* const lost = std::get_if<protocol::MpiServerLost>(&event))
      return ServerLost(view, host, *lost);
    // The rank may not exit by itself: MPICH's ranks wait to be killed.
    const auto* const aborted = std::get_if<protocol::MpiAborted>(&event);
    if (aborted != nullptr && view.running && view.facts.Find(aborted->rank) != nullptr) {
      Finding finding{{fact::MpiAborted{{aborted->rank}, {aborted->code, aborted->message, aborted->broke}}}};
      finding.then = Then::kFailed;
      finding.rank = aborted->rank;
      return finding;
    }
    const auto* const ended = std::get_if<protocol::RankEnded>(&event);
    return ended != nullptr ? InnerEnded(view, *ended) : Finding();
  }

  void Ends() override { exchange_.Fail(Error{DTRUN_ABORTED, "the job is ending"}); }

 private:
  static Finding InnerEnded(const View& view, const protocol::RankEnded& ended) {
    if (view.facts.Find(ended.rank) == nullptr || !ended.ending.failed()) return {};
    if (!view.running && (WasAskedToEnd(ended.ending) || !MayBeMistaken(view))) return {};
    Finding finding{{fact::InnerFailed{{{ended.rank}, ended.ending, 0}, ended.pid}}};
    if (!view.running) finding.facts.push_back(fact::FailedFirst{{ended.rank}});
    finding.then = view.running ? Then::kFailed : Then::kGoOn;
    finding.rank = ended.rank;
    return finding;
  }

  // Ranks that have exited before turn out to be needed.
  static Finding Started(const View& view, int started) {
    Finding finding{{fact::MpiStarted{{started}}}};
    for (const verdict::RankFacts& rank : view.facts.ranks) {
      if (!view.running || !rank.ending) continue;  // failed ranks have already ended the job
      const bool itself = started >= rank.rank && started < rank.rank + rank.count;
      const process::EarlyExit early = itself || rank.mpi == Mpi::kStarted
                                           ? process::EarlyExit::kBeforeFinalize
                                       : rank.mpi == Mpi::kNone ? process::EarlyExit::kBeforeInit
                                                                : process::EarlyExit::kNone;
      if (early == process::EarlyExit::kNone) continue;
      finding.facts.push_back(fact::EndedEarly{{rank.rank}, early});
      finding.then = Then::kFailed;
      finding.rank = rank.rank;
      break;
    }
    return finding;
  }

  // Ranks need the server from MPI_Init to the end of MPI_Finalize: both are fences of all ranks. Ranks that
  // have not called MPI_Init may never do so.
  static Finding ServerLost(const View& view, std::size_t host, const protocol::MpiServerLost& lost) {
    if (!view.running) return {};
    verdict::MpiServerLoss loss{view.plan.hosts[host].name, lost.how, {}, {}};
    bool all_over = true;
    for (const verdict::RankFacts& rank : view.facts.ranks) {
      if (rank.ending) continue;
      if (rank.mpi == Mpi::kStarted) loss.needed.push_back(rank.rank);
      if (rank.mpi == Mpi::kNone) all_over = false;
    }
    Finding finding;
    if (loss.needed.empty()) {
      finding.line =
          fmt::format("dtrun: warning: the PMIx server of host {} {}; {}", loss.host, loss.how,
                      all_over ? "all ranks have finished with MPI, so the job continues"
                               : "the job continues, but ranks that call MPI_Init from now on fail");
      return finding;
    }
    finding.facts.push_back(fact::MpiServerLost{std::move(loss)});
    finding.then = Then::kStop;
    return finding;
  }

  pmi::Exchange exchange_;
};

}  // namespace

std::unique_ptr<Observer> WatchMpi(std::function<void(int host, const protocol::Exchanged&)> answer) {
  return std::make_unique<MpiObserver>(std::move(answer));
}

process::EarlyExit EarlyExitOf(const verdict::Facts& facts, const verdict::RankFacts& rank) {
  // The backend's MPI, which ends with the process, no rank needs after dtrun_finalize.
  if (rank.mpi == Mpi::kStarted)
    return rank.left ? process::EarlyExit::kNone : process::EarlyExit::kBeforeFinalize;
  const bool needed = std::ranges::any_of(
      facts.ranks, [](const verdict::RankFacts& other) { return other.mpi != Mpi::kNone; });
  return needed && rank.mpi == Mpi::kNone ? process::EarlyExit::kBeforeInit : process::EarlyExit::kNone;
}

}  // namespace dtrun::observe
