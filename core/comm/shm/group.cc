#include "core/comm/shm/group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/number.h"
#include "core/comm/operation.h"

namespace dtrun::shm {
namespace {

using sdk::Failure;

constexpr int kLooksPerQuestion = 8;  // of the store, while ranks meet

// Rounded up: the rest of a longer time is no round number.
std::string TimeText(std::int64_t timeout_ns) {
  return FormatDuration(std::chrono::ceil<std::chrono::milliseconds>(Nanoseconds(timeout_ns)));
}

}  // namespace

Group::Group(const sdk::Host& host, const sdk::CommParams& params)
    : health_(host),
      kv_(params.kv),
      name_(params.name),
      rank_(params.rank),
      size_(params.size),
      layout_(params.size),
      patience_(Patience::For(params.Oversubscribed())) {
  Meet(params);
}

// Rank 0 creates the memory and publishes its place; the others map it and sign in. Rank 0 closes its
// descriptor once all have signed in, so that no other process can map it later.
void Group::Meet(const sdk::CommParams& params) {
  Deadline deadline(params.timeout.count());
  deadline.Start();
  if (rank_ == 0) {
    memory_ = Memory::Create("dtrun-comm", layout_.total);
    for (int rank = 0; rank < size_; ++rank) new (at(layout_.rank_at(rank))) Rank;
    new (at(0)) FailureRecord;
    params.kv.Set("shm", std::to_string(getpid()) + " " + std::to_string(memory_.fd()));
  } else {
    std::string place;
    try {
      place = params.kv.Get("shm", params.timeout);
    } catch (const Failure& failure) {
      if (failure.code() != DTRUN_TIMEOUT) throw;
      throw Failure(DTRUN_TIMEOUT, "rank 0 did not come within " + TimeText(params.timeout.count()), 0);
    }
    char* end = nullptr;
    const auto pid = static_cast<pid_t>(std::strtol(place.c_str(), &end, 10));
    const auto fd = static_cast<int>(std::strtol(end, nullptr, 10));
    memory_ = Memory::Open(pid, fd);
    if (memory_.bytes() != layout_.total) {
      throw Failure(DTRUN_MISMATCH,
                    fmt::format("rank 0 made '{}' for another number of ranks than {}", name_, size_), 0);
    }
  }
  failure_ = reinterpret_cast<FailureRecord*>(at(0));
  mine_ = &rank_of(rank_);
  mine_->pid.store(getpid());
  mine_->presence.store(Presence::kHere);
  mine_->orders_asleep.store(BestOrdering() == Ordering::kBySleeper);
  Publish(mine_->step.value, 1, mine_->step.sleepers, ordering_);
  step_ = 1;

  const dtrun_op joining = [] {
    dtrun_op op;
    DTRUN_INIT(op);
    return op;
  }();
  Running running{&joining, deadline};
  processes_.resize(static_cast<std::size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Await(rank_of(peer).step.value, 1, rank_of(peer).step.sleepers, peer, running);
    const pid_t pid = rank_of(peer).pid.load();
    if (pid == getpid()) continue;
    const auto& process = processes_[static_cast<std::size_t>(peer)] = sdk::PeerProcess::Of(pid, "");
    if (process->Ended()) FailGone(peer, running);
  }
  bool all = true;
  for (int rank = 0; rank < size_; ++rank) all = all && rank_of(rank).orders_asleep.load();
  if (all) ordering_ = Ordering::kBySleeper;
  memory_.CloseFd();
  met_ = true;
}

Group::~Group() {
  if (mine_ == nullptr) return;
  mine_->presence.store(Presence::kLeft);
  WakeEverybody();
}

void Group::Enter() {
  ThrowIfFailed();
  Post& post = NextPost();
  Publish(post.call_number, ++call_number_, mine_->post_sleepers, ordering_);
}

bool Group::EntriesCame() const {
  constexpr int kLooks = 40;
  int left = patience_.spins > 0 ? kLooks : 1;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const Post& post = PostOf(peer);
    while (!Reached(post.call_number.load(std::memory_order_acquire), call_number_)) {
      if (--left <= 0) return false;
      Pause();
    }
  }
  return true;
}

void Group::AwaitEntries(Running& running) {
  bool same = true;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Rank& other = rank_of(peer);
    Post& post = other.posts[call_number_ % 2];
    Await(post.call_number, call_number_, other.post_sleepers, peer, running);
    same = same && post.call == call_;
  }
  if (!same) [[unlikely]]
    ThrowMismatch();
  // All have read this rank's previous post; its line returns while the call ends.
  PrefetchToWrite(&NextPost());
}

void Group::ThrowMismatch() {
  int other = 1;
  while (PostOf(other).call == PostOf(0).call) ++other;
  const auto first = sdk::Signature::OfWords(PostOf(0).call);
  const auto second = sdk::Signature::OfWords(PostOf(other).call);
  std::string text = fmt::format("call {} on '{}' differs: rank 0 calls {}, rank {} calls {}", call_number_,
                                 name_, sdk::SignatureText(first), other, sdk::SignatureText(second));
  if (first.shape != second.shape && first.shape != 0 && second.shape != 0)
    text += "; the counts per rank must be the same on all ranks";
  Fail(Failure(DTRUN_MISMATCH, text, rank_ == other ? 0 : other));
}

void Group::AwaitStep(std::uint32_t step, Running& running) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Rank& other = rank_of(peer);
    Await(other.step.value, step, other.step.sleepers, peer, running);
  }
}

void Group::Await(const std::atomic<std::uint32_t>& word, std::uint32_t target,
                  std::atomic<std::uint32_t>& sleepers, int peer, Running& running) {
  const int most = PatienceOf(running).spins;
  for (int spins = 0; spins <= most; ++spins) {
    if (Reached(word.load(std::memory_order_acquire), target)) return;
    Pause();
  }
  AwaitIdly(word, target, sleepers, peer, running);
}

void Group::AwaitIdly(const std::atomic<std::uint32_t>& word, std::uint32_t target,
                      std::atomic<std::uint32_t>& sleepers, int peer, Running& running) {
  running.deadline.Start();
  for (int yields = PatienceOf(running).yields; yields > 0; --yields) {
    sched_yield();
    if (Reached(word.load(std::memory_order_acquire), target)) return;
  }
  for (int looks = 0;;) {
    Announce(sleepers, ordering_);
    const std::uint32_t seen = word.load();
    if (Reached(seen, target)) return;
    ThrowIfFailed();
    Sleep(word, seen, running.deadline.Left(kLookAround));
    if (Reached(word.load(std::memory_order_acquire), target)) return;
    // A rank that cannot join fails the space; before all have met, this is the only sign of it.
    if (!met_ && ++looks % kLooksPerQuestion == 0) (void)kv_.TryGet("met");
    const bool gone = Gone(peer);
    // It may have reached the target before it ended.
    if (Reached(word.load(std::memory_order_acquire), target)) return;
    ThrowIfFailed();
    if (gone) FailGone(peer, running);
    if (running.deadline.Passed()) FailTimeout(peer, running);
  }
}

bool Group::Gone(int peer) const {
  if (rank_of(peer).presence.load() == Presence::kLeft) return true;
  if (processes_.empty()) return false;
  const auto& process = processes_[static_cast<std::size_t>(peer)];
  return process && process->Ended();
}

bool Group::Record(dtrun_status code, int peer, std::string_view text) {
  FailureState none = FailureState::kNone;
  if (!failure_->state.compare_exchange_strong(none, FailureState::kBeingWritten)) return false;
  sdk::internal::CopyCut(failure_->text, sizeof failure_->text, text);
  failure_->code = code;
  failure_->rank = rank_;
  failure_->peer = peer;
  failure_->state.store(FailureState::kSet);
  WakeEverybody();
  return true;
}

void Group::ThrowFailure() const {
  // A writer that dies in the middle leaves no text; then its death is the failure to report.
  for (int tries = 0; failure_->state.load() != FailureState::kSet; ++tries) {
    if (tries > 1000) throw Failure(DTRUN_REMOTE_FAILURE, "another rank failed while it reported a failure");
    sched_yield();
  }
  const std::string text = RecordedText();
  const bool own = failure_->rank == rank_ || !met_;
  if (failure_->code == DTRUN_TIMEOUT && !own) {
    const std::string blamed = fmt::format("rank {} gave up: {}", failure_->rank, text);
    ReportPeer(failure_->rank, blamed);
    throw Failure(DTRUN_REMOTE_FAILURE, blamed, failure_->rank);
  }
  // Name the other side if this rank is the peer.
  const int peer = failure_->peer == rank_ ? failure_->rank : failure_->peer;
  if (failure_->code == DTRUN_REMOTE_FAILURE || failure_->code == DTRUN_TIMEOUT) ReportPeer(peer, text);
  throw Failure(failure_->code, text, peer);
}

void Group::Fail(const Failure& failure) {
  (void)Record(failure.code(), failure.peer(), failure.what());
  ThrowFailure();
}

void Group::ReportPeer(int peer, const std::string& what) const {
  if (peer >= 0 && peer != rank_ && !reported_.exchange(true)) health_.ReportPeer(kv_, peer, what);
}

void Group::FailGone(int peer, Running& running) {
  const std::string what = running.op->kind == 0 ? "joining" : comm::Describe(*running.op, name_);
  const bool left = rank_of(peer).presence.load() == Presence::kLeft;
  Fail(Failure(DTRUN_REMOTE_FAILURE,
               fmt::format("rank {} {} while rank {} waited for it in {}", peer,
                           left ? "left the communicator" : "ended", rank_, what),
               peer));
}

void Group::FailTimeout(int peer, Running& running) {
  const dtrun_op& op = *running.op;
  const std::string what =
      op.kind == 0 ? "the ranks did not meet" : comm::Describe(op, name_) + " did not end";
  std::string why = fmt::format("rank {} is missing", peer);
  if (op.kind == DTRUN_SEND)
    why = fmt::format("rank {} has not received it; look whether it receives from rank {} with that tag",
                      peer, rank_);
  if (op.kind == DTRUN_RECV) {
    const bool anyone = op.peer == DTRUN_ANY_SOURCE;
    why = fmt::format("{} sent it; look who sends to rank {} with that tag",
                      anyone ? "no rank has" : fmt::format("rank {} has not", peer), rank_);
  }
  Fail(Failure(DTRUN_TIMEOUT,
               fmt::format("{} within {}: {}", what, TimeText(running.deadline.timeout_ns()), why), peer));
}

void Group::Abandon(const Running& running) {
  (void)Record(DTRUN_TIMEOUT, -1,
               fmt::format("{} did not end within {}", comm::Describe(*running.op, name_),
                           TimeText(running.deadline.timeout_ns())));
}

void Group::Abort(const std::string& reason) {
  (void)Record(DTRUN_ABORTED, rank_, fmt::format("'{}' was aborted: {}", name_, reason));
}

std::optional<std::string> Group::FailureText() const {
  if (failure_->state.load() != FailureState::kSet) return std::nullopt;
  return RecordedText();
}

std::string Group::RecordedText() const {
  return {failure_->text, ::strnlen(failure_->text, sizeof failure_->text)};
}

void Group::WakeEverybody() const {
  for (int rank = 0; rank < size_; ++rank) {
    Rank& other = rank_of(rank);
    WakeAll(other.step.value);
    WakeAll(other.wakeup.value);
    WakeAll(other.posts[0].call_number);
    WakeAll(other.posts[1].call_number);
  }
}

}  // namespace dtrun::shm
