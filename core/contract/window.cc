#include "core/contract/window.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/contract/ring.h"

namespace dtrun::contract {
namespace {

constexpr int kIdleLooks = 5;             // without a change, until ranks are idle
constexpr std::uint64_t kLastCalls = 32;  // reported of idle ranks

void AddCalls(const Ring& ring, std::uint64_t last, std::uint64_t count, Window& to) {
  for (std::uint64_t left = std::min(last, count); left > 0; --left) {
    const std::uint64_t number = last - left + 1;
    if (const auto seen = Read(ring, number)) to.calls.push_back({number, seen->chain, seen->call});
  }
}

void AddCheckpoints(const Ring& ring, std::uint64_t after, std::uint64_t last, Window& to) {
  constexpr std::uint64_t kOldest = kCheckpointEvery * (kCheckpoints - 1);
  std::uint64_t number = std::max(after, last > kOldest ? last - kOldest - kCheckpointEvery : 0);
  while (number < last) {  // both are multiples
    number += kCheckpointEvery;
    if (const auto chain = ReadCheckpoint(ring, number)) to.checkpoints.emplace_back(number, *chain);
  }
}

}  // namespace

Reporter::Reporter(const RecorderMemory& recorder_memory, std::vector<int> ranks)
    : recorder_memory_(recorder_memory), ranks_(std::move(ranks)), told_(ranks_.size() * kRings) {}

std::vector<Window> Reporter::Report() {
  std::vector<Window> out;
  std::map<std::uint64_t, int> here;  // ranks of each communicator
  for (const int rank : ranks_) {
    for (const Ring& ring : recorder_memory_.RingsOf(rank))
      ++here[ring.communicator.load(std::memory_order_acquire)];
  }
  std::set<std::uint64_t> spoken_for;
  for (std::size_t i = 0; i < told_.size(); ++i) {
    Told& told = told_[i];
    const Ring& ring = recorder_memory_.RingsOf(ranks_[i / kRings])[i % kRings];
    const auto [heading, damage] = ReadHeading(ring, recorder_memory_.ranks);
    if (damage != nullptr) continue;  // the checker reports it
    const std::uint64_t communicator = heading ? heading->communicator : 0;
    if (communicator != told.communicator) {
      if (told.any) TellFreed(told, out);
      told = {};
      told.communicator = communicator;
    }
    if (communicator == 0 || heading->size <= here[communicator]) continue;
    told.member = {ranks_[i / kRings], heading->rank};
    if (spoken_for.insert(communicator).second) TellProgress(ring, *heading, told, out);
    TellIdle(ring, *heading, told, out);
  }
  asked_ = 0;
  std::erase_if(out, [this](const Window& window) { return !MakesSense(window, recorder_memory_.ranks); });
  return out;
}

void Reporter::TellFreed(const Told& told, std::vector<Window>& out) {
  Window window;
  window.communicator = told.communicator;
  window.members = {told.member};
  window.freed = true;
  out.push_back(std::move(window));
}

Window& Reporter::Add(const Ring& ring, const Heading& heading, Told& told, std::vector<Window>& out) {
  told.any = true;
  Window& window = out.emplace_back();
  window.communicator = told.communicator;
  window.name = heading.name;
  window.device = DeviceOf(ring);
  window.size = heading.size;
  window.members = {told.member};
  if (told.idle) window.idle = told.last;
  return window;
}

// For all ranks of the host; its agent compares them.
void Reporter::TellProgress(const Ring& ring, const Heading& heading, Told& told, std::vector<Window>& out) {
  const std::uint64_t checkpoint = LastCheckpoint(ring);
  if (checkpoint > told.checkpoint) {
    AddCheckpoints(ring, told.checkpoint, checkpoint, Add(ring, heading, told, out));
    told.checkpoint = checkpoint;
  }
  if (asked_ == told.communicator) {
    AddCalls(ring, heading.started, kEntries, Add(ring, heading, told, out));
  }
}

void Reporter::TellIdle(const Ring& ring, const Heading& heading, Told& told, std::vector<Window>& out) {
  const Idle now{heading.started, heading.ended};
  const std::uint64_t messages = MarkOf(ring);
  if (now != told.last || messages != told.messages) {
    told.last = now;
    told.messages = messages;
    told.looks = 0;
    if (std::exchange(told.idle, false)) Add(ring, heading, told, out);  // it makes calls again
    return;
  }
  if (told.idle || ++told.looks < kIdleLooks) return;
  const std::optional<Remembered> last = Read(ring, now.started);
  if (now.started > 0 && !last) return;  // it is making calls
  told.idle = true;
  for (Window& other : out) {
    const bool same_calls =
        now.started == 0 || (!other.calls.empty() && other.calls.back().chain == last->chain);
    const bool alike = other.communicator == told.communicator && other.idle == now && messages == 0 &&
                       other.messages.empty() && same_calls;
    if (!alike) continue;
    told.any = true;
    return other.members.push_back(told.member);
  }
  Window& window = Add(ring, heading, told, out);
  AddCalls(ring, now.started, kLastCalls, window);
  if (messages != 0) window.messages = ReadMessages(ring);
}

namespace {

Ring* RingFor(const RecorderMemory& recorder_memory, const Window& window, const Window::Member& member) {
  for (Ring& ring : recorder_memory.RingsOf(member.world_rank)) {
    if (ring.communicator.load(std::memory_order_relaxed) == window.communicator) return &ring;
  }
  if (window.freed) return nullptr;
  return OpenRing(recorder_memory, member.world_rank, window.communicator, window.name, member.rank,
                  window.size);
}

}  // namespace

bool MakesSense(const Window& window, int world_size) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;  // calls; more than any rank makes
  const auto is_number = [](std::uint64_t number) { return number > 0 && number < kMost; };
  const int size = window.freed ? world_size : window.size;  // a freed one has no size any more
  const auto fits = [&](const Window::Member& member) {
    return member.world_rank >= 0 && member.world_rank < world_size && member.rank >= 0 && member.rank < size;
  };
  return window.communicator != 0 && size > 0 && size <= world_size && window.name.size() < kRingNameBytes &&
         std::ranges::all_of(window.members, fits) &&
         (!window.idle || (window.idle->started < kMost && window.idle->ended < kMost)) &&
         window.calls.size() <= kEntries && window.checkpoints.size() <= kCheckpoints &&
         window.messages.size() <= kMessageRows &&
         std::ranges::all_of(window.calls, is_number, &Window::Seen::number) &&
         std::ranges::all_of(window.checkpoints, [&](const auto& checkpoint) {
           return is_number(checkpoint.first) && checkpoint.first % kCheckpointEvery == 0;
         });
}

void Enter(const RecorderMemory& recorder_memory, const std::vector<int>& here, const Window& window) {
  if (!MakesSense(window, recorder_memory.ranks)) return;
  for (const Window::Member& member : window.members) {
    if (std::ranges::find(here, member.world_rank) != here.end()) continue;
    Ring* const ring = RingFor(recorder_memory, window, member);
    if (ring == nullptr) continue;
    if (window.freed) {
      ring->communicator.store(0, std::memory_order_release);
      continue;
    }
    if (!window.device.empty()) NameDevice(*ring, window.device);
    for (const auto& [number, chain] : window.checkpoints) WriteCheckpoint(*ring, number, chain);
    WriteMessages(*ring, window.messages);
    for (const Window::Seen& seen : window.calls) Write(*ring, seen.number, seen.call, seen.chain);
    if (window.idle) {
      ring->ended.store(window.idle->ended, std::memory_order_release);
      ring->started.store(window.idle->started, std::memory_order_release);
    }
    ring->moving.store(!window.idle, std::memory_order_release);
  }
}

}  // namespace dtrun::contract
