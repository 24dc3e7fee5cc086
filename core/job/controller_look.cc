// The controller's inspections of ranks: before it ends ranks that others waited for, and when nothing makes
// progress.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/job/controller.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

// A rank that is exiting makes progress within this time; a stuck one does not.
constexpr std::chrono::milliseconds kStandsStillAfter{250};

// On a busy machine, a rank frees its locks at most this long before it ends.
constexpr std::chrono::seconds kEndsWithin{5};

// Ranks that do not wait for others come first, then those with unknown state.
std::vector<int> WorthACloserLook(const std::vector<verdict::RankDoing>& ranks, std::size_t most) {
  std::vector<int> closely;
  for (const stacks::Stand stand : {stacks::Stand::kElsewhere, stacks::Stand::kUnknown}) {
    for (const verdict::RankDoing& doing : ranks) {
      if (doing.stand == stand && closely.size() < most) closely.push_back(doing.rank);
    }
  }
  return closely;
}

}  // namespace

std::vector<std::string> Controller::LastLines(const verdict::RankFacts& rank) const {
  const auto& output = world_.outputs[static_cast<std::size_t>(rank.blamed())];
  return output == nullptr ? std::vector<std::string>() : output->Tail(kEvidenceLines);
}

void Controller::KeepLastLines() {
  for (verdict::RankFacts& rank : facts_.ranks) {
    if (!rank.ending) rank.before = LastLines(rank);
  }
}

void Controller::Look(Inspection::Done done, const std::vector<int>& closely) {
  std::map<std::size_t, protocol::Host*> hosts;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].state == State::kRunning) hosts[i] = members_[i].host;
  }
  inspection_.Begin(hosts, std::move(done), closely);
}

void Controller::KeepLocks(const std::vector<verdict::RankDoing>& ranks, bool ending) {
  const auto now = Clock::now();
  std::erase_if(locked_out_, [&](const auto& one) { return !ending && now - one.second.seen > kEndsWithin; });
  for (const verdict::RankDoing& doing : ranks) {
    if (doing.waits_for >= 0) locked_out_[doing.rank] = {doing.waits_for, now};
  }
}

void Controller::LookForLocks(const protocol::Output& output) {
  constexpr std::string_view kTraceback = "Traceback (most recent call last)";
  if (phase_ != Phase::kRunning || output.stream != dtrun::output::Stream::kErr ||
      Clock::now() < look_next_ || output.bytes.find(kTraceback) == std::string_view::npos)
    return;
  look_next_ = Clock::now() + look_apart_;
  look_apart_ *= 2;
  Look([this](const protocol::Inspected& all) { KeepLocks(all.ranks, true); });
}

void Controller::On(std::size_t host, const protocol::Inspected& inspected) {
  inspection_.Answer(host, inspected);
}

void Controller::LookAndStop(int signal, bool again, const std::vector<int>& closely) {
  phase_ = Phase::kLooking;
  const bool last = !closely.empty();
  const auto judge = [this, signal, again, last](const protocol::Inspected& all) {
    if (phase_ != Phase::kLooking) return;
    bool still = false;
    for (verdict::RankFacts& rank : facts_.ranks) {
      rank.doing.reset();
      rank.inside.clear();
    }
    for (const verdict::RankDoing& doing : all.ranks) {
      const int index = IndexOf(doing.rank);
      if (index < 0) continue;
      facts_.ranks[static_cast<std::size_t>(index)].Saw(doing);
      still = still || doing.stand == stacks::Stand::kElsewhere;
    }
    const std::vector<int> next = last ? std::vector<int>() : WorthACloserLook(all.ranks, kMostClosely);
    if (again && still) return LookAgainSoon(signal, next);
    if (!next.empty()) return LookAndStop(signal, false, next);
    KeepStacks("before the ranks were ended", all.ranks);
    StopAll(signal);
  };
  Look(judge, closely);
}

std::string Controller::KeepStacks(const std::string& why, const std::vector<verdict::RankDoing>& ranks) {
  std::string file = world_.keep_stacks && !ranks.empty() ? world_.keep_stacks(why, ranks) : "";
  facts_.stacks = facts_.stacks || !file.empty();
  return file;
}

void Controller::LookAgainSoon(int signal, const std::vector<int>& closely) {
  deadline_.expires_after(kStandsStillAfter);
  deadline_.async_wait([this, signal, closely, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended || phase_ != Phase::kLooking) return;
    for (verdict::RankFacts& rank : facts_.ranks) {  // some only had to print the same as others
      const auto lines = rank.ending ? std::vector<std::string>() : LastLines(rank);
      if (verdict::SaysPeerIsMissing(lines)) rank.before = lines;
    }
    LookAndStop(signal, false, closely);
  });
}

void Controller::OnStall(const Stall& stall) {
  if (phase_ != Phase::kRunning) return;
  std::vector<verdict::RankDoing> ranks = stall.ranks;
  for (verdict::RankDoing& rank : ranks) {
    if (std::ranges::find(stall.working, rank.rank) != stall.working.end())
      rank.phrase = "at work " + rank.phrase;
  }
  const std::string quiet = verdict::FormatElapsed(stall.standstill);
  const std::string file = KeepStacks("no progress for " + quiet, ranks);
  say_(fmt::format("dtrun: no progress for {}{}: {}{}{}", quiet,
                   stall.deadlock ? ", and the ranks wait in different collectives"
                                  : " (no output, no collective that is recorded)",
                   verdict::PlacesText(ranks),
                   stall.deadlock ? "; every rank has to call the same ones, in the same order" : "",
                   file.empty() ? "" : "; stacks: " + file) +
       (world_.stall.fails ? "" : "; the job goes on; --set watch.on_stall=fail ends such a job"));
  if (!world_.stall.fails || !stall.working.empty() || stall.standstill < world_.stall.after) return;
  for (const verdict::RankDoing& doing : stall.ranks) {
    if (const int index = IndexOf(doing.rank); index >= 0)
      facts_.ranks[static_cast<std::size_t>(index)].Saw(doing);
  }
  facts_.stalled = quiet;
  LookAndStop(SIGTERM, false);
}

}  // namespace dtrun::job
