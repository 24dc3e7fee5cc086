#include "core/comm/turn.h"

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "dtrun/plugin/process_watch.hpp"

namespace dtrun::comm {
namespace {

constexpr char kJoined[] = "joined", kLeft[] = "left";

std::string StartOf(pid_t pid) { return sdk::internal::StartOf(std::to_string(pid)); }

struct Holder {
  int number = 0;
  std::string state;
  pid_t pid = 0;
  std::string start;
};

Holder HolderOf(const std::string& text) {
  Holder holder;
  std::istringstream(text) >> holder.number >> holder.state >> holder.pid >> holder.start;
  return holder;
}

Error Refusal(int rank, pid_t holder) {
  if (holder == ::getpid()) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("init: rank {} has joined already: process {} called dtrun_init, and then "
                             "executed another program (exec) without dtrun_finalize; call dtrun_init in "
                             "the last program alone",
                             rank, holder)};
  }
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("init: rank {} has joined already, as process {}; start more ranks (-n), or call "
                           "dtrun_init in one process of a rank",
                           rank, holder)};
}

}  // namespace

Turn::Turn(std::shared_ptr<dtrun_kv> kv, int rank, int number)
    : kv_(std::move(kv)), key_(std::to_string(rank)), number_(number) {}

std::string Turn::Text(const char* state) const {
  return fmt::format("{} {} {} {}", number_, state, ::getpid(), StartOf(::getpid()));
}

Result<Turn> Turn::Take(std::shared_ptr<dtrun_kv> kv, int rank) {
  Turn turn(std::move(kv), rank, 0);
  const Result<bool> first = turn.kv_->CompareSet(turn.key_, false, {}, turn.Text(kJoined));
  if (!first) return first.error();
  if (*first) return turn;
  const Result<std::string> before = turn.kv_->TryGet(turn.key_);
  if (!before) return before.error();
  const Holder holder = HolderOf(*before);
  if (holder.state == kJoined && StartOf(holder.pid) == holder.start) return Refusal(rank, holder.pid);
  turn.number_ = holder.number + 1;
  const Result<bool> taken = turn.kv_->CompareSet(turn.key_, true, *before, turn.Text(kJoined));
  if (!taken) return taken.error();
  if (*taken) return turn;
  const Result<std::string> now = turn.kv_->TryGet(turn.key_);
  return now ? Refusal(rank, HolderOf(*now).pid) : now.error();
}

void Turn::End() { (void)kv_->Set(key_, Text(kLeft)); }

}  // namespace dtrun::comm
