#include "core/node/inspector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/base/fd.h"
#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/contract/environment.h"
#include "core/node/torch_recorder.h"
#include "core/process/process.h"
#include "core/stacks/doing.h"
#include "core/stacks/environment.h"
#include "core/stacks/kernel.h"
#include "core/stacks/unwinder.h"
#include "core/verdict/overrides.h"

namespace dtrun::node {
namespace {

// Limit for one rank's stacks, so that many ranks fit into a message.
constexpr std::size_t kMostText = std::size_t{32} << 10;

using Clock = stacks::Unwinder::Clock;

// Takes native stacks of the requested ranks, one rank at a time.
class Unwinding {
 public:
  Unwinding(std::vector<int> ranks, std::shared_ptr<stacks::Attached> attached)
      : ranks_(std::move(ranks)), attached_(std::move(attached)) {
    const char* const path = ::getenv("PATH");  // the agent's; nothing changes it meanwhile
    if (!ranks_.empty() && path != nullptr) unwinder_ = stacks::Unwinder::Find(path, attached_);
  }

  // Tools that are attached now, of earlier looks too.
  const stacks::Attached& attached() const { return *attached_; }

  void Add(int rank, stacks::Doing* doing) {
    if (std::ranges::find(ranks_, rank) == ranks_.end()) return;
    std::unique_lock lock(one_at_a_time_, deadline_);
    if (lock && Clock::now() < deadline_) return stacks::LookClosely(unwinder_, deadline_, doing);
    doing->text += "  no native stack: those of other ranks used up the time\n";
  }

 private:
  const std::vector<int> ranks_;
  const std::shared_ptr<stacks::Attached> attached_;
  const Clock::time_point deadline_ = Clock::now() + kUnwindPatience;
  stacks::Unwinder unwinder_ = stacks::Unwinder::Find("");
  std::timed_mutex one_at_a_time_;
};

struct Seen {
  verdict::RankDoing doing;
  std::vector<pid_t> processes;  // of the rank
  pid_t program = 0;             // the one of these that was inspected
  pid_t lock_holder = 0;         // see stacks::Doing
};

Seen LookAtRank(const Inspector::Target& target, int rank, pid_t pid, std::vector<pid_t> below,
                Unwinding& unwinding) {
  stacks::Doing seen = stacks::LookAt(pid, below, unwinding.attached(), target.detail);
  unwinding.Add(rank, &seen);
  verdict::RankDoing doing;
  doing.rank = rank;
  doing.stand = seen.stand;
  doing.trains = seen.trains;
  doing.may_handle = seen.may_handle;
  doing.joins = seen.joins;
  doing.loads = seen.loads;
  doing.saves = seen.saves;
  doing.pid = seen.pid;
  doing.runs = seen.runs;
  doing.naps = seen.naps;
  doing.spot = seen.spot;
  doing.scheduled = stacks::ScheduledOf(seen.pid);
  doing.phrase = stacks::PhraseOf(seen);
  doing.in_source = !seen.where.empty();
  doing.beside = seen.beside;
  doing.text = seen.text;
  if (seen.awaited) doing.awaited = contract::Awaited{.ranks = *std::move(seen.awaited)};
  if (seen.python && !seen.stopped && !target.sockets.empty()) {
    if (std::optional<TorchCall> torch = AskTorch(target.sockets, seen.pid)) {
      const bool waits = torch->call.under_way && !torch->members.empty();
      if (waits) doing.awaited = contract::Awaited{.ranks = std::move(torch->members)};
      doing.call = std::move(torch->call);
    }
  }
  if (doing.text.size() > kMostText) {
    doing.text.resize(kMostText);
    doing.text += "\n...\n";
  }
  below.push_back(pid);
  for (const pid_t one : target.detail == stacks::Detail::kAll ? below : std::vector<pid_t>()) {
    const stacks::Used used = stacks::UsedBy(one);
    doing.processor_ms += used.processor_ms;
    doing.kernel_ms += used.kernel_ms;
    doing.bytes += used.bytes;
    doing.resident += used.resident;
    doing.faults += used.faults;
  }
  return {std::move(doing), std::move(below), seen.pid, seen.lock_holder};
}

std::vector<pid_t> Below(pid_t pid) {
  std::vector<pid_t> below;
  for (const process::Process& process : process::Descendants(pid)) {
    if (process.state != 'Z') below.push_back(process.pid);
  }
  return below;
}

// The processes of ranks that a program of the plan starts, such as mpirun; parents first.
std::map<int, std::vector<pid_t>> RanksBelow(const Inspector::Target& target,
                                             const std::vector<pid_t>& below) {
  std::map<int, std::vector<pid_t>> ranks;
  if (!process::StartEnvironment(target.pid, contract::kRank).empty()) return ranks;
  for (const pid_t pid : below) {
    const std::string text = process::StartEnvironment(pid, contract::kRank);
    const int rank = std::atoi(text.c_str());
    if (!text.empty() && rank >= target.rank && rank < target.rank + target.count) ranks[rank].push_back(pid);
  }
  return ranks;
}

// Reads the current environment of the program, which may run below a wrapper.
void AddOverrides(const Inspector::Target& target, Seen* seen) {
  std::vector<std::string> names;
  for (const auto& [name, value] : target.given) names.push_back(name);
  const stacks::ProcessMemory memory(seen->program);
  const std::string maps = ReadKernelFile(fmt::format("/proc/{}/maps", seen->program));
  verdict::RankDoing& doing = seen->doing;
  doing.overrides =
      verdict::OverridesOf(target.rank, target.given, stacks::EnvironmentNow(memory, maps, names));
  for (verdict::Override& one : doing.overrides) one.now = Printable(one.now);
  if (doing.joins && !doing.overrides.empty())
    doing.beside = "has set " + verdict::OverridesText(doing.overrides);
}

std::vector<Seen> LookAtTarget(const Inspector::Target& target, Unwinding& unwinding) {
  const std::vector<pid_t> below = Below(target.pid);
  std::vector<Seen> found;
  for (auto& [rank, pids] : RanksBelow(target, below)) {
    const pid_t first = pids.front();
    pids.erase(pids.begin());
    found.push_back(LookAtRank(target, rank, first, pids, unwinding));
  }
  if (!found.empty()) return found;
  found.push_back(LookAtRank(target, target.rank, target.pid, below, unwinding));
  if (!target.given.empty()) AddOverrides(target, &found.back());
  return found;
}

// Finds ranks that wait for a file lock held by another rank. `complete`: no rank is missing.
std::vector<verdict::RankDoing> WithLocks(const std::vector<Seen>& found, bool complete) {
  std::map<pid_t, int> ranks;
  for (const Seen& seen : found) {
    for (const pid_t process : seen.processes) ranks[process] = seen.doing.rank;
  }
  std::vector<verdict::RankDoing> out;
  for (const Seen& seen : found) {
    verdict::RankDoing& doing = out.emplace_back(seen.doing);
    if (seen.lock_holder == 0 || doing.stand != stacks::Stand::kElsewhere) continue;
    const auto holder = ranks.find(seen.lock_holder);
    if (holder == ranks.end() ? complete : holder->second == doing.rank) continue;
    doing.stand = stacks::Stand::kMayWait;
    if (holder == ranks.end()) continue;
    doing.waits_for = holder->second;
    doing.beside = fmt::format("a lock that rank {} holds", holder->second);
  }
  return out;
}

// The results of the threads, which may outlive the loop.
struct Findings {
  Findings(std::size_t wanted, std::vector<int> closely, std::shared_ptr<stacks::Attached> attached)
      : count(wanted),
        wakeup(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        unwinding(std::move(closely), std::move(attached)) {}

  void Add(std::vector<Seen> ranks) {
    const std::lock_guard lock(mutex);
    for (Seen& seen : ranks) found.push_back(std::move(seen));
    if (++answers < count) return;
    const std::uint64_t one = 1;
    // if this fails, the time limit ends the wait
    [[maybe_unused]] const ssize_t told = ::write(wakeup.get(), &one, sizeof one);
  }

  const std::size_t count;
  const UniqueFd wakeup;
  Unwinding unwinding;
  std::mutex mutex;
  std::size_t answers = 0;
  std::vector<Seen> found;
};

}  // namespace

class Inspector::UnderWay : public std::enable_shared_from_this<UnderWay> {
 public:
  UnderWay(asio::io_context& loop, std::size_t count, std::vector<int> closely,
           std::shared_ptr<stacks::Attached> attached, Done done)
      : findings_(std::make_shared<Findings>(count, std::move(closely), std::move(attached))),
        heard_(loop),
        limit_(loop),
        done_(std::move(done)) {}

  void Start(const std::vector<Target>& targets, std::chrono::nanoseconds limit) {
    if (targets.empty())
      return asio::post(heard_.get_executor(), [self = shared_from_this()] { self->Finish(); });
    for (const Target& target : targets) {
      try {
        StartThread("dtrun-look", [findings = findings_, target] {
          findings->Add(LookAtTarget(target, findings->unwinding));
        }).detach();
      } catch (const std::system_error&) {
        findings_->Add({});  // no thread available: no result for this rank
      }
    }
    error_code none;
    heard_.assign(::fcntl(findings_->wakeup.get(), F_DUPFD_CLOEXEC, 0), none);
    if (!none) {
      heard_.async_wait(asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this()](const error_code& error) {
                          if (!error) self->Finish();
                        });
    }
    limit_.After(limit, [self = shared_from_this()] { self->Finish(); });
  }

  void Cancel() {
    done_ = {};
    heard_.close();
    limit_.Cancel();
  }

 private:
  void Finish() {
    const Done done = std::exchange(done_, {});
    Cancel();
    if (!done) return;
    std::vector<verdict::RankDoing> found;
    {
      const std::lock_guard lock(findings_->mutex);
      found = WithLocks(findings_->found, findings_->answers == findings_->count);
    }
    std::ranges::sort(found, {}, &verdict::RankDoing::rank);
    done(std::move(found));
  }

  const std::shared_ptr<Findings> findings_;
  asio::posix::stream_descriptor heard_;
  Timer limit_;
  Done done_;
};

void Inspector::Look(const std::vector<Target>& targets, Done done, std::vector<int> closely,
                     std::chrono::nanoseconds limit) {
  Cancel();
  under_way_ =
      std::make_shared<UnderWay>(loop_, targets.size(), std::move(closely), attached_, std::move(done));
  under_way_->Start(targets, limit);
}

void Inspector::Cancel() {
  if (const auto before = std::exchange(under_way_, nullptr)) before->Cancel();
}

OverrideWatch::OverrideWatch(asio::io_context& loop, std::vector<Inspector::Target> ranks,
                             std::function<void(const protocol::RendezvousSeen&)> told, Times times)
    : timer_(loop), inspector_(loop), ranks_(std::move(ranks)), told_(std::move(told)), times_(times) {
  if (std::ranges::any_of(ranks_, [](const auto& rank) { return !rank.given.empty(); })) Wait(times_.first);
}

void OverrideWatch::Wait(std::chrono::milliseconds after) {
  timer_.After(after, [this, after] {
    Look();
    Wait(std::min(2 * after, times_.longest));
  });
}

void OverrideWatch::Look() {
  std::vector<Inspector::Target> living;
  for (const Inspector::Target& rank : ranks_) {
    const auto process = process::ReadProcess(rank.pid);
    if (process && process->state != 'Z') living.push_back(rank);
  }
  inspector_.Look(living, [this](const std::vector<verdict::RankDoing>& seen) { Tell(seen); });
}

void OverrideWatch::Tell(const std::vector<verdict::RankDoing>& seen) {
  protocol::RendezvousSeen looked;
  for (const verdict::RankDoing& doing : seen) {
    std::string text = verdict::OverridesText(doing.overrides);
    if (text.empty() || known_[doing.rank] == text) continue;
    known_[doing.rank] = std::move(text);
    looked.overrides.insert(looked.overrides.end(), doing.overrides.begin(), doing.overrides.end());
  }
  if (!looked.overrides.empty()) told_(looked);
}

}  // namespace dtrun::node
