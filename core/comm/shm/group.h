// The ranks of one host that meet in shared memory: calls, steps, waiting and failures.
//
// One per communicator and rank, owned by ShmCommunicator. Calls run one at a time: Enter, AwaitEntries and
// the step functions belong to the thread that runs the call. The rest is thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/shm/layout.h"
#include "core/comm/shm/memory.h"
#include "core/comm/shm/waiting.h"
#include "dtrun/plugin/call_queue.hpp"
#include "dtrun/plugin/process_watch.hpp"

namespace dtrun::shm {

using Deadline = sdk::LazyDeadline;
using Running = sdk::Running;

class Group {
 public:
  // Meets the others; ends within params.timeout. Throws sdk::Failure.
  Group(const sdk::Host& host, const sdk::CommParams& params);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  const Layout& layout() const { return layout_; }
  std::byte* at(std::size_t place) const { return memory_.data() + place; }
  Rank& rank_of(int rank) const { return *reinterpret_cast<Rank*>(at(layout_.rank_at(rank))); }

  // ---- calls; every rank makes the same calls in the same order ----

  // This rank's post for the next call: fill in flags and payload, then call Enter.
  Post& Prepare(const sdk::Signature& call) {
    const sdk::SignatureWords words = call.Words();
    Post& post = NextPost();
    for (std::size_t i = 0; i < words.size(); ++i) post.call[i] = call_[i] = words[i];
    return post;
  }
  void Enter();
  // Whether all have entered; polls for less than a microsecond.
  bool EntriesCame() const;
  // Waits for all; throws a mismatch if a rank makes another call.
  void AwaitEntries(Running& running);
  // The post of `rank` for the current call. Valid until the next call is entered. Reading one's own is as
  // slow as reading another's: a read takes the line away from the rank that wrote it.
  const Post& PostOf(int rank) const { return rank_of(rank).posts[call_number_ % 2]; }
  std::uint32_t call_number() const { return call_number_; }

  // Step announces one more step of this rank; AwaitStep waits until all others have made it.
  void Step() { Publish(mine_->step.value, ++step_, mine_->step.sleepers, ordering_); }
  std::uint32_t step() const { return step_; }
  void AwaitStep(std::uint32_t step, Running& running);
  // Takes the next turn of the stages; all ranks count alike. Once every rank has entered or stepped twice
  // since, all have read what a rank wrote into its stage of a turn.
  std::uint32_t NextTurn() { return ++turn_; }
  std::uint32_t turn() const { return turn_; }

  // ---- waiting and failing; any thread ----

  // Sleeps until `word` reaches `target`. `peer`: the rank it waits for.
  void Await(const std::atomic<std::uint32_t>& word, std::uint32_t target,
             std::atomic<std::uint32_t>& sleepers, int peer, Running& running);
  const Patience& patience() const { return patience_; }
  // Throws when the communicator failed.
  void ThrowIfFailed() const {
    if (failure_->state.load(std::memory_order_acquire) != FailureState::kNone) [[unlikely]]
      ThrowFailure();
  }
  // True if `peer` can do nothing any more: it left, or its process ended.
  bool Gone(int peer) const;
  // Makes `failure` the communicator's, unless it has one, and throws the one it has.
  [[noreturn]] void Fail(const sdk::Failure& failure);
  [[noreturn]] void FailGone(int peer, Running& running);
  [[noreturn]] void FailTimeout(int peer, Running& running);
  // Fails with the timeout of a call that may not have started.
  void Abandon(const Running& running);
  void Abort(const std::string& reason);
  std::optional<std::string> FailureText() const;

 private:
  Post& NextPost() const { return mine_->posts[(call_number_ + 1) % 2]; }
  Patience PatienceOf(const Running& running) const {
    return running.beside ? Patience::For(true) : patience_;
  }
  // The part of Await after spinning.
  [[gnu::noinline]] void AwaitIdly(const std::atomic<std::uint32_t>& word, std::uint32_t target,
                                   std::atomic<std::uint32_t>& sleepers, int peer, Running& running);
  void Meet(const sdk::CommParams& params);
  void ThrowMismatch();
  bool Record(dtrun_status code, int peer, std::string_view text);
  [[noreturn]] void ThrowFailure() const;
  // Stops at the end of the record, even if it was overwritten.
  std::string RecordedText() const;
  // Reports the peer to blame to core, once.
  void ReportPeer(int peer, const std::string& what) const;
  void WakeEverybody() const;

  const sdk::Health health_;
  const sdk::Kv kv_;
  const std::string name_;
  const int rank_;
  const int size_;
  const Layout layout_;
  const Patience patience_;
  Ordering ordering_ = Ordering::kByPublisher;  // until all have met
  Memory memory_;
  FailureRecord* failure_ = nullptr;
  Rank* mine_ = nullptr;
  std::vector<std::shared_ptr<const sdk::PeerProcess>> processes_;  // null for ranks of this process
  std::uint32_t call_number_ = 0;
  sdk::SignatureWords call_{};  // this rank's current one
  std::uint32_t step_ = 0;
  std::uint32_t turn_ = 0;
  mutable std::atomic<bool> reported_{false};
  bool met_ = false;
};

}  // namespace dtrun::shm
