#include "rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <utility>

#include "dtrun/plugin/op.hpp"

namespace dtrun::conformance {
namespace {

struct Playing {
  RankWatch* watch = nullptr;
  int rank = 0;
};
thread_local Playing playing;

RankWatch::Listener hang_listener = nullptr;

}  // namespace

std::chrono::seconds RankTimeLimit() {
  const char* const text = std::getenv("DTRUN_CONFORMANCE_TIMEOUT");
  const int seconds = text == nullptr ? 0 : std::atoi(text);
  return std::chrono::seconds(seconds > 0 ? seconds : 120);
}

RankWatch::RankWatch(std::string name, int ranks)
    : name_(std::move(name)), ranks_(static_cast<std::size_t>(ranks)) {}

void RankWatch::ListenForHangs(Listener listener) { hang_listener = listener; }

void RankWatch::Enter(int rank) { playing = {this, rank}; }

void RankWatch::Leave(int rank) {
  playing = {};
  const std::lock_guard<std::mutex> lock(mutex_);
  ranks_[static_cast<std::size_t>(rank)].left = true;
  changed_.notify_all();
}

void RankWatch::Doing(const char* action, const dtrun_op* op) {
  if (playing.watch == nullptr) return;
  const std::lock_guard<std::mutex> lock(playing.watch->mutex_);
  Rank& rank = playing.watch->ranks_[static_cast<std::size_t>(playing.rank)];
  rank.action = action;
  if (op == nullptr) return;
  rank.op = *op;
  rank.has_op = true;
}

void RankWatch::Await(std::chrono::seconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto all_left = [this] { return std::ranges::all_of(ranks_, &Rank::left); };
  if (changed_.wait_for(lock, limit, all_left)) return;
  std::ostringstream text;
  text << "its ranks did not end within " << limit.count() << " s (F1)\n";
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    text << "  rank " << i << ": " << (rank.left ? "has returned" : rank.action);
    if (!rank.left && rank.has_op) text << "; last operation: " << sdk::OperationText(rank.op);
    text << '\n';
  }
  if (hang_listener != nullptr) {
    hang_listener(text.str());
  } else {
    std::cerr << "[  FAILED  ] " << name_ << ": " << text.str();
  }
  std::cerr.flush();
  std::cout.flush();
  _exit(1);  // no thread that hangs can be joined
}

void RankWatch::EndProcess(int rank, const std::exception& error) {
  static auto* const first = new std::mutex;  // who has it keeps it
  first->lock();
  std::cerr << "rank " << rank << ": " << error.what() << std::endl;
  std::abort();
}

}  // namespace dtrun::conformance
