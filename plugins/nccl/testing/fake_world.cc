#include "fake_world.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "dtrun/kernels.hpp"
#include "fake_control.h"

namespace dtrun::nccl_fake {
namespace {

std::int32_t DtrunType(nccl::DataType type) {
  constexpr std::int32_t kTypes[] = {DTRUN_INT8,    DTRUN_UINT8,   DTRUN_INT32,   DTRUN_UINT32,
                                     DTRUN_INT64,   DTRUN_UINT64,  DTRUN_FLOAT16, DTRUN_FLOAT32,
                                     DTRUN_FLOAT64, DTRUN_BFLOAT16};
  return kTypes[type];
}

std::int32_t DtrunReduce(nccl::Reduction reduction) {
  constexpr std::int32_t kReduces[] = {DTRUN_SUM, DTRUN_PROD, DTRUN_MAX, DTRUN_MIN, DTRUN_AVG};
  return kReduces[reduction];
}

using Bytes = std::vector<unsigned char>;
using Calls = std::map<int, const Call*>;

// Elements [first, first + count) of all send buffers, combined.
Bytes Combine(const Calls& calls, std::size_t first, std::size_t count) {
  const Call& any = *calls.begin()->second;
  const std::size_t width = TypeBytes(any.type);
  std::vector<Bytes> scaled;
  scaled.reserve(calls.size());
  std::vector<const void*> sources;
  for (const auto& [rank, call] : calls) {
    const void* source = static_cast<const char*>(call->send) + first * width;
    if (call->scaled) {
      scaled.emplace_back(count * width);
      kernels::Scale(scaled.back().data(), source, count, DtrunType(any.type), call->scale);
      source = scaled.back().data();
    }
    sources.push_back(source);
  }
  Bytes out(count * width);
  kernels::ReduceFor(DtrunType(any.type), DtrunReduce(any.reduction))(
      out.data(), sources.data(), static_cast<int>(sources.size()), count);
  return out;
}

bool IsMessage(const Call& call) { return call.kind == Kind::kSend || call.kind == Kind::kRecv; }

char* At(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }
const char* At(const void* base, std::size_t bytes) { return static_cast<const char*>(base) + bytes; }

}  // namespace

std::size_t TypeBytes(nccl::DataType type) { return kernels::ElementBytes(DtrunType(type)); }

void World::Join() {
  const std::lock_guard lock(mutex_);
  ++joined_;
}

bool World::complete() {
  const std::lock_guard lock(mutex_);
  return joined_ == size_;
}

void World::Abort(Rank& rank) {
  const std::lock_guard lock(mutex_);
  rank.aborted = true;
  // Its buffers are the owner's again as soon as this returns.
  for (auto& [number, round] : rounds_) round.calls.erase(rank.rank);
  for (auto& [ends, box] : mail_) {
    if (ends.first == rank.rank) box.clear();
  }
  changed_.notify_all();
}

std::uint64_t World::Take(Rank& rank) {
  const std::lock_guard lock(mutex_);
  return rank.next_launch++;
}

bool World::Idle(Rank& rank) {
  const std::lock_guard lock(mutex_);
  return rank.next_launch == rank.next_run;
}

void World::Run(Rank& rank, std::uint64_t number, const std::vector<Call>& calls) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return rank.aborted || rank.next_run == number; });
  // A test clears `stuck` without a notice, so it is polled.
  while (!rank.aborted && dtrun_fake_nccl()->stuck) changed_.wait_for(lock, std::chrono::milliseconds(1));
  for (const Call& call : calls) {
    if (!IsMessage(call)) Collective(rank, call, lock);
  }
  Messages(rank, calls, lock);
  rank.next_run = std::max(rank.next_run, number + 1);
  changed_.notify_all();
}

void World::Collective(Rank& rank, const Call& call, Lock& lock) {
  if (rank.aborted) return;
  const std::uint64_t number = rank.next_collective++;
  Round& round = rounds_[number];
  round.calls[rank.rank] = &call;
  if (round.calls.size() == static_cast<std::size_t>(size_) && Agree(round)) {
    Perform(round);
    round.done = true;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return rank.aborted || round.done; });
  round.calls.erase(rank.rank);
  if (round.done && round.calls.empty()) rounds_.erase(number);
}

bool World::Agree(const Round& round) const {
  const Call& first = *round.calls.begin()->second;
  return std::all_of(round.calls.begin(), round.calls.end(), [&](const auto& entry) {
    const Call& call = *entry.second;
    return call.kind == first.kind && call.count == first.count && call.type == first.type &&
           call.partner == first.partner && (call.scaled ? first.scaled : call.reduction == first.reduction);
  });
}

void World::Perform(const Round& round) const {
  const Call& any = *round.calls.begin()->second;
  const std::size_t bytes = any.count * TypeBytes(any.type);
  const auto size = static_cast<std::size_t>(size_);
  std::map<int, Bytes> results;  // first all of them: buffers may be in place
  for (const auto& [rank, call] : round.calls) {
    const auto index = static_cast<std::size_t>(rank);
    Bytes& result = results[rank];
    switch (any.kind) {
      case Kind::kAllReduce:
      case Kind::kReduce:
        if (rank == 0) result = Combine(round.calls, 0, any.count);
        break;
      case Kind::kReduceScatter: result = Combine(round.calls, index * any.count, any.count); break;
      case Kind::kAllToAll:
        for (std::size_t from = 0; from < size; ++from) {
          const char* const part = At(round.calls.at(static_cast<int>(from))->send, index * bytes);
          result.insert(result.end(), part, part + bytes);
        }
        break;
      default: result.assign(At(call->send, 0), At(call->send, bytes)); break;
    }
  }
  for (const auto& [rank, call] : round.calls) {
    const auto deliver = [&, to = call](const Bytes& data, std::size_t at) {
      std::memcpy(At(to->recv, at), data.data(), data.size());
    };
    switch (any.kind) {
      case Kind::kAllReduce: deliver(results[0], 0); break;
      case Kind::kReduce:
        if (rank == any.partner) deliver(results[0], 0);
        break;
      case Kind::kBroadcast: deliver(results[any.partner], 0); break;
      case Kind::kAllGather:
        for (std::size_t from = 0; from < size; ++from)
          deliver(results[static_cast<int>(from)], from * bytes);
        break;
      default: deliver(results[rank], 0); break;
    }
  }
}

void World::Messages(Rank& rank, const std::vector<Call>& calls, Lock& lock) {
  std::vector<std::pair<int, std::shared_ptr<Letter>>> sent;
  for (const Call& call : calls) {
    if (call.kind != Kind::kSend || rank.aborted) continue;
    sent.emplace_back(call.partner,
                      std::make_shared<Letter>(Letter{call.send, call.count * TypeBytes(call.type)}));
    mail_[{rank.rank, call.partner}].push_back(sent.back().second);
  }
  changed_.notify_all();
  for (const Call& call : calls) {
    if (call.kind != Kind::kRecv) continue;
    auto& box = mail_[{call.partner, rank.rank}];
    const std::size_t bytes = call.count * TypeBytes(call.type);
    // A message of another size is never received.
    changed_.wait(lock, [&] { return rank.aborted || (!box.empty() && box.front()->bytes == bytes); });
    if (rank.aborted) break;
    std::memcpy(call.recv, box.front()->data, bytes);
    box.front()->taken = true;
    box.pop_front();
    changed_.notify_all();
  }
  changed_.wait(lock, [&] {
    return rank.aborted ||
           std::all_of(sent.begin(), sent.end(), [](const auto& entry) { return entry.second->taken; });
  });
  for (const auto& [peer, letter] : sent) {
    auto& box = mail_[{rank.rank, peer}];
    box.erase(std::remove(box.begin(), box.end(), letter), box.end());
  }
}

}  // namespace dtrun::nccl_fake
