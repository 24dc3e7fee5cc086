#include "core/agent/inspector.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/agent/process.h"
#include "core/base/fd.h"
#include "core/base/thread.h"
#include "core/stacks/doing.h"
#include "core/stacks/kernel.h"

namespace dtrun::agent {
namespace {

// Of one rank's stacks, so that many ranks fit into a message.
constexpr std::size_t kMostText = std::size_t{32} << 10;

RankDoing LookAtRank(int rank, pid_t pid) {
  std::vector<pid_t> below;
  for (const Process& process : Descendants(pid)) {
    if (process.state != 'Z') below.push_back(process.pid);
  }
  const stacks::Doing seen = stacks::LookAt(pid, below);
  RankDoing doing{rank, seen.stand, seen.trains, stacks::PhraseOf(seen), seen.text, 0, 0};
  if (doing.text.size() > kMostText) {
    doing.text.resize(kMostText);
    doing.text += "\n...\n";
  }
  below.push_back(pid);
  for (const pid_t one : below) {
    const stacks::Used used = stacks::UsedBy(one);
    doing.processor_ms += used.processor_ms;
    doing.bytes += used.bytes;
  }
  return doing;
}

// What the threads leave behind them. They may outlast the loop.
struct Findings {
  explicit Findings(std::size_t wanted) : count(wanted), bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Add(RankDoing doing) {
    const std::lock_guard lock(mutex);
    if (!doing.phrase.empty()) found.push_back(std::move(doing));
    if (++answers < count) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(bell.get(), &one, sizeof one);  // the limit tells as well
  }

  const std::size_t count;
  const UniqueFd bell;
  std::mutex mutex;
  std::size_t answers = 0;
  std::vector<RankDoing> found;
};

}  // namespace

class Inspector::UnderWay : public std::enable_shared_from_this<UnderWay> {
 public:
  UnderWay(boost::asio::io_context& loop, std::size_t count, Done done)
      : findings_(std::make_shared<Findings>(count)), heard_(loop), limit_(loop), done_(std::move(done)) {}

  void Start(const std::vector<Target>& targets, std::chrono::nanoseconds limit) {
    for (const Target& target : targets) {
      try {
        StartThread("dtrun-look", [findings = findings_, target] {
          findings->Add(LookAtRank(target.rank, target.pid));
        }).detach();
      } catch (const std::system_error&) {
        findings_->Add({});  // no thread to spare: this rank goes without
      }
    }
    boost::system::error_code none;
    heard_.assign(::fcntl(findings_->bell.get(), F_DUPFD_CLOEXEC, 0), none);
    if (!none) {
      heard_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (!error) self->Finish();
                        });
    }
    limit_.expires_after(limit);
    limit_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->Finish();
    });
  }

  void Cancel() {
    done_ = {};
    heard_.close();
    limit_.cancel();
  }

 private:
  void Finish() {
    const Done done = std::exchange(done_, {});
    Cancel();
    if (!done) return;
    std::vector<RankDoing> found;
    {
      const std::lock_guard lock(findings_->mutex);
      found = findings_->found;
    }
    std::ranges::sort(found, {}, &RankDoing::rank);
    done(std::move(found));
  }

  const std::shared_ptr<Findings> findings_;
  boost::asio::posix::stream_descriptor heard_;
  boost::asio::steady_timer limit_;
  Done done_;
};

void Inspector::Look(const std::vector<Target>& targets, Done done, std::chrono::nanoseconds limit) {
  Cancel();
  if (targets.empty()) return boost::asio::post(loop_, [done = std::move(done)] { done({}); });
  under_way_ = std::make_shared<UnderWay>(loop_, targets.size(), std::move(done));
  under_way_->Start(targets, limit);
}

void Inspector::Cancel() {
  if (const auto before = std::exchange(under_way_, nullptr)) before->Cancel();
}

}  // namespace dtrun::agent
