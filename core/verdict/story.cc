#include "core/verdict/story.h"

#include <algorithm>
#include <utility>

#include "core/base/visit.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

constexpr std::size_t kMostReports = 64;  // of one rank about its peers
constexpr int kMostRanks = 1 << 20;
constexpr std::chrono::seconds kEndsWithin{30};  // of an error that ends a rank

// Summaries in order, a bounded number of them.
void Keep(fact::Earlier* earlier, const Facts& facts) {
  const bool begins = earlier->first.size() < GenerationSummary::kFirst;
  (begins ? earlier->first : earlier->latest).push_back(Summarise(facts));
  if (earlier->latest.size() <= GenerationSummary::kLatest) return;
  earlier->latest.erase(earlier->latest.begin());
  ++earlier->omitted;
}

}  // namespace

// What each record changes. `at`: since the generation began.
struct Fold {
  Story& story;
  const Entry& entry;
  Facts& facts = story.facts_;
  const std::chrono::nanoseconds at = entry.at - story.began_;

  // A later file of the same job repeats what the story has from the file before.
  void operator()(const fact::Opened& m) {
    if (!story.begun_) story.opened_ = m;
  }
  void operator()(const fact::Earlier& m) {
    if (!story.begun_) story.earlier_ = m;
  }
  void operator()(const fact::Began& m) {
    Next(m.generation);
    facts.logs = m.logs;
    facts.regroups = m.regroups;
    facts.names_class = m.names_class;
    int ranks = 0;
    for (const fact::Began::Process& process : m.processes) {
      if ((ranks += process.count) > kMostRanks) break;
      RankFacts& rank = facts.ranks.emplace_back();
      rank.rank = process.rank;
      rank.count = process.count;
      rank.host = process.host;
      rank.program = process.program;
      rank.unheard = true;
    }
    std::ranges::sort(facts.ranks, {}, &RankFacts::rank);
    story.over_ = false;
  }
  void operator()(const fact::Withdrawn&) {
    if (!story.begun_ || story.over_) return;
    story.begun_ = story.over_ = story.before_.has_value();
    facts = std::exchange(story.before_, std::nullopt).value_or(Facts());
    std::vector<GenerationSummary>& kept =
        story.earlier_.latest.empty() ? story.earlier_.first : story.earlier_.latest;
    if (story.begun_ && !kept.empty()) kept.pop_back();
  }
  void operator()(const fact::Over&) {
    facts.duration = facts.time_limit.empty() ? at : entry.at;  // a limit is one of the whole job
    facts.elapsed = entry.at;
    story.over_ = true;
    story.EndOuterProcesses();
  }
  void operator()(const fact::EndedBetween& m) {
    if (!story.begun_ || facts.generation != m.generation) Next(m.generation);
    facts.logs = story.opened_.folder;
    facts.first_failed = -1;
    facts.losses.clear();
    facts.regroup.clear();
    facts.restarts = false;
    facts.duration = facts.elapsed = entry.at;
    facts.guard_died = m.guard_died;
    facts.time_limit = m.time_limit;
    facts.interrupt = m.signal;
    facts.between = true;
    facts.stacks = false;
    for (RankFacts& rank : facts.ranks) {
      rank.doing.reset();
      rank.inside.clear();
    }
    story.over_ = true;
  }
  void operator()(const fact::HostClock&) {}
  void operator()(const fact::NotStarted& m) { story.not_started_ = m.why; }
  void operator()(const fact::NotShown& m) { story.lines_not_shown_ = m.lines; }

  void operator()(const fact::Places& m) {
    if (story.over_) return;
    for (RankFacts& rank : facts.ranks) {
      if (!m.last) break;
      rank.doing.reset();
      rank.inside.clear();
    }
    for (const fact::Places::Rank& one : m.ranks) {
      RankFacts* const rank = story.Find(one.rank);
      if (rank == nullptr) continue;
      if (m.last && rank->count == 1) rank->doing = one.doing;
      // A moment of work of its library, such as gloo's loop, does not mean that it waits no longer.
      if (rank->doing && !facts.stalled.empty() && rank->doing->stand == stacks::Stand::kMayWait &&
          rank->seen && rank->seen->stand == stacks::Stand::kWaits &&
          rank->seen->phrase == rank->doing->phrase)
        rank->doing->stand = stacks::Stand::kWaits;
      if (m.last && rank->count > 1) rank->inside.push_back(one.doing);
      rank->seen = one.doing;
      if (one.doing.waits_for >= 0) rank->lock = {one.doing.waits_for, at};
      if (one.doing.waits_for < 0) NoLongerWaits(*rank);
    }
  }
  void operator()(const fact::MpiServerLost& m) {
    if (story.over_) return;
    facts.mpi_server_loss = m.loss;
    facts.mpi_server_loss->at = at;
  }
  void operator()(const fact::HostLost& m) {
    if (story.over_) return;
    facts.losses.push_back(m.loss);
    facts.losses.back().at = at;
  }
  void operator()(const fact::Straggled& m) {
    if (!story.over_) facts.straggler = m.straggler;
  }
  void operator()(const fact::HostsApart& m) { facts.apart = m.what; }
  void operator()(const fact::Isolated& m) {
    if (!story.over_) facts.isolated_ranks = m.found;
  }
  void operator()(const fact::Interrupted& m) {
    if (story.over_) return;
    facts.interrupt = m.signal;
    facts.interrupt_host = m.host;
  }
  void operator()(const fact::Noted& m) {
    using What = fact::Noted::What;
    if (story.over_ && m.what != What::kRestarts && m.what != What::kNotRestarted) return;
    switch (m.what) {
      case What::kCallsDiffer: facts.calls_differ = m.text; break;
      case What::kStalled: facts.stalled = m.text; break;
      case What::kTimeLimit: facts.time_limit = m.text; break;
      case What::kRegroup: facts.regroup = m.text; break;
      case What::kMet: facts.met = true; break;
      case What::kGuardDied: facts.guard_died = true; break;
      case What::kAccomplished: facts.accomplished = true; break;
      case What::kStacks: facts.stacks = true; break;
      case What::kRestarts: facts.restarts = true; break;
      case What::kGap: story.gap_ = true; break;
      case What::kWorkedAlone: facts.worked_alone = m.text; break;
      case What::kNotRestarted:
        facts.restarts = false;
        facts.not_restarted = m.text;
        break;
    }
  }
  // A record about one rank.
  template <class M>
  void operator()(const M& m) {
    RankFacts* const rank = story.Find(m.rank);
    if (rank != nullptr && (!story.over_ || std::is_same_v<M, fact::Recognised>)) Of(*rank, m);
  }

 private:
  void Next(std::uint64_t generation) {
    story.before_.reset();
    if (story.begun_) {
      Keep(&story.earlier_, facts);
      story.before_ = std::move(facts);
    }
    facts = Facts();
    facts.job = story.opened_.job;
    facts.generation = generation;
    story.began_ = entry.at;
    story.begun_ = true;
  }
  // The end of a rank frees its locks, and its error comes shortly before: what the others do from then on
  // says nothing about them.
  void NoLongerWaits(RankFacts& rank) {
    const RankFacts* const holder = rank.lock ? story.Find(rank.lock->holder) : nullptr;
    const bool ends =
        holder != nullptr && (holder->ending || (holder->erred_at && at - *holder->erred_at < kEndsWithin));
    if (!ends) rank.lock.reset();
  }

  void Of(RankFacts& rank, const fact::Started& m) { rank.pid = m.pid; }
  void Of(RankFacts& rank, const fact::Joined&) {
    facts.met = rank.joined = true;
    rank.left = false;  // it may have left to rejoin after a failure: its earlier reports are obsolete
    rank.reports.clear();
  }
  void Of(RankFacts& rank, const fact::Left&) { rank.left = true; }
  void Of(RankFacts& rank, const fact::Reported& m) {
    if (rank.reports.size() < kMostReports) rank.reports.push_back(m.report);
  }
  void Of(RankFacts& rank, const fact::MpiStarted&) {
    facts.met = true;
    rank.mpi = RankFacts::Mpi::kStarted;
  }
  void Of(RankFacts& rank, const fact::MpiFinished&) { rank.mpi = RankFacts::Mpi::kFinished; }
  void Of(RankFacts& rank, const fact::MpiAborted& m) {
    rank.abort = m.abort;
    rank.ended_at = at;
  }
  void Of(RankFacts& rank, const fact::Ended& m) {
    rank.ending = rank.failed ? rank.failed->ending : m.ending;
    if (rank.failed) return;
    if (!rank.abort) rank.ended_at = at;
    rank.signal_sent = m.signal_sent;
  }
  void Of(RankFacts& rank, const fact::CrashedAt& m) {
    if (rank.blamed() == m.rank) rank.crashed_at = m.place;
  }
  void Of(RankFacts& rank, const fact::EndedEarly& m) {
    if (rank.ending) rank.ending->early_exit = m.how;
  }
  void Of(RankFacts& rank, const fact::InnerFailed& m) {
    rank.failed = RankFacts::Inner{m.rank, m.pid, m.ending};
    if (rank.ending) rank.ending = m.ending;
    rank.signal_sent = 0;
    rank.ended_at = at;
  }
  void Of(RankFacts& rank, const fact::FailedFirst&) {
    if (rank.ending || rank.abort || rank.failed)
      facts.first_failed = static_cast<int>(&rank - facts.ranks.data());
  }
  void Of(RankFacts& rank, const fact::Overrode& m) {
    std::erase_if(rank.overrides, [&](const Override& other) { return other.name == m.name; });
    rank.overrides.push_back({m.rank, m.name, m.given, m.now});
  }
  void Of(RankFacts& rank, const fact::MovedOn&) { NoLongerWaits(rank); }
  void Of(RankFacts& rank, const fact::PrintedError&) { rank.erred_at = at; }
  void Of(RankFacts& rank, const fact::SaidBefore& m) { rank.before = m.lines; }
  void Of(RankFacts& rank, const fact::SaidLast& m) {
    rank.tail = m.lines;
    rank.unheard = false;
    rank.log_files.assign(m.files.begin(), m.files.end());
    rank.log_cut = m.cut;
  }
  void Of(RankFacts& rank, const fact::Recognised& m) { rank.known = m.found; }
};

RankFacts* Story::Find(int rank) { return const_cast<RankFacts*>(std::as_const(facts_).Find(rank)); }

void Story::Apply(const Entry& entry) { Visit(Fold{*this, entry}, entry.fact); }

void Story::End(std::chrono::nanoseconds at) {
  if (!begun_ || over_) return;
  facts_.cut = true;
  facts_.duration = at - began_;
  facts_.elapsed = at;
  EndOuterProcesses();
  for (RankFacts& rank : facts_.ranks) {
    if (!rank.doing && rank.inside.empty() && facts_.first_failed < 0) rank.doing = rank.seen;
  }
}

void Story::EndOuterProcesses() {
  for (RankFacts& rank : facts_.ranks) {
    if (rank.failed && !rank.ending) rank.ending = rank.failed->ending;
  }
}

void Story::MoveTo(const std::filesystem::path& folder) {
  const std::string before = opened_.folder, now = folder.string();
  if (before.empty() || before == now) return;
  const auto move = [&](std::string path) {
    return path.starts_with(before) ? now + path.substr(before.size()) : path;
  };
  opened_.folder = now;
  facts_.logs = move(facts_.logs);
  for (RankFacts& rank : facts_.ranks) {
    for (std::filesystem::path& file : rank.log_files) file = move(file.string());
    if (rank.known) rank.known->file = move(rank.known->file.string());
  }
}

}  // namespace dtrun::verdict
