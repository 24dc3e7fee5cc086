// Reductions and broadcast over two layers.
#include <algorithm>
#include <optional>

#include "core/comm/hierarchy/layered_calls.h"
#include "core/comm/operation.h"

namespace dtrun::comm {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;

}  // namespace

// The leader's result buffer collects its host's data, goes over the wire in place, and is what the host
// reads in the end.
void LayeredCalls::Allreduce(shm::Running& running) {
  const dtrun_op& op = *running.op;
  const std::uint64_t width = DtypeSize(op.dtype);
  const std::uint64_t chunk = kChunkBytes / width;
  const std::uint64_t chunks = std::max<std::uint64_t>(1, (op.count + chunk - 1) / chunk);
  const auto count = [&](std::uint64_t k) { return std::min(chunk, op.count - k * chunk); };
  std::optional<Step> flying;
  for (std::uint64_t k = 0; k <= chunks; ++k) {
    std::optional<Step> next;
    if (k < chunks) {
      std::byte* const result = At(op.recv, k * chunk, width);
      dtrun_op combine = LocalReduction(op, count(k));
      combine.send = At(op.send, k * chunk, width);
      combine.recv = Leads() ? result : nullptr;
      local_.Do(combine, running.deadline);
      if (Leads()) {
        dtrun_op across = WireReduction(op, DTRUN_ALLREDUCE, count(k));
        if (chunks > 1) across.flags = 0;
        across.send = across.recv = result;
        next.emplace(wire_->Start(across, running.deadline));
      }
    }
    if (k > 0) {
      std::byte* const result = At(op.recv, (k - 1) * chunk, width);
      if (flying) {
        flying->Wait();
        Finish(op, result, count(k - 1));
      }
      dtrun_op spread = StepOf(op, DTRUN_BROADCAST, count(k - 1));
      spread.recv = result;
      local_.Do(spread, running.deadline);
    }
    flying = std::move(next);
  }
}

void LayeredCalls::Reduce(shm::Running& running) {
  const dtrun_op& op = *running.op;
  const std::uint64_t width = DtypeSize(op.dtype);
  const std::uint64_t chunk = kChunkBytes / width;
  const bool root = op.root == topology_.rank;
  std::byte* const scratch = Leads() && !root ? Scratch(kChunkBytes) : nullptr;
  for (std::uint64_t at = 0; at == 0 || at < op.count; at += chunk) {
    const std::uint64_t count = std::min(chunk, op.count - at);
    std::byte* const mine = root ? At(op.recv, at, width) : nullptr;
    std::byte* const into = root ? mine : scratch;
    dtrun_op combine = LocalReduction(op, count);
    combine.send = At(op.send, at, width);
    combine.recv = Leads() ? into : nullptr;
    local_.Do(combine, running.deadline);
    if (Leads()) {
      dtrun_op across = WireReduction(op, DTRUN_REDUCE, count);
      across.root = topology_.HostOf(op.root);
      across.send = into;
      across.recv = RootIsHere(op) ? into : nullptr;
      wire_->Do(across, running.deadline);
      if (RootIsHere(op)) Finish(op, into, count);
    }
    if (!RootIsHere(op) || root == Leads()) continue;
    // The root gets it from its leader.
    dtrun_op hand = StepOf(op, root ? DTRUN_RECV : DTRUN_SEND, count);
    hand.peer = root ? 0 : topology_.place_of[static_cast<std::size_t>(op.root)];
    hand.send = into;
    hand.recv = mine;
    if (root || Leads()) local_.Do(hand, running.deadline);
  }
}

void LayeredCalls::Broadcast(shm::Running& running) {
  const dtrun_op& op = *running.op;
  const std::uint64_t width = DtypeSize(op.dtype);
  const std::uint64_t chunk = kChunkBytes / width;
  const std::uint64_t chunks = std::max<std::uint64_t>(1, (op.count + chunk - 1) / chunk);
  const auto step = [&](std::uint64_t k) {
    dtrun_op spread = StepOf(op, DTRUN_BROADCAST, std::min(chunk, op.count - k * chunk));
    spread.recv = At(op.recv, k * chunk, width);
    return spread;
  };
  const auto spread = [&](std::uint64_t k) {
    dtrun_op inside = step(k);
    if (RootIsHere(op)) inside.root = topology_.place_of[static_cast<std::size_t>(op.root)];
    local_.Do(inside, running.deadline);
  };
  const auto start = [&](std::uint64_t k) {
    dtrun_op across = step(k);
    across.root = topology_.HostOf(op.root);
    if (chunks > 1) across.flags = 0;
    return wire_->Start(across, running.deadline);
  };
  std::optional<Step> flying;
  if (RootIsHere(op)) {
    for (std::uint64_t k = 0; k < chunks; ++k) {
      spread(k);
      if (!Leads()) continue;
      if (flying) flying->Wait();
      flying.emplace(start(k));
    }
    if (flying) flying->Wait();
    return;
  }
  if (Leads()) flying.emplace(start(0));
  for (std::uint64_t k = 0; k < chunks; ++k) {
    if (flying) {
      flying->Wait();
      flying.reset();
      if (k + 1 < chunks) flying.emplace(start(k + 1));
    }
    spread(k);
  }
}

void LayeredCalls::ReduceScatter(shm::Running& running) {
  const dtrun_op& op = *running.op;
  const std::uint64_t width = DtypeSize(op.dtype);
  const sdk::Parts parts = sdk::SendParts(op, topology_.rank, topology_.size());
  const std::uint64_t most = std::max<std::uint64_t>(1, kScratchBytes / (size_ * width));
  const std::uint64_t longest = sdk::LongestOf(parts);
  std::byte* const scratch = Scratch(most * size_ * width);
  for (std::uint64_t at = 0; at == 0 || at < longest; at += most) {
    const Round round = RoundOf(parts, at, most);
    Pack(round, parts, at, width, op.send, scratch);
    dtrun_op combine = LocalReduction(op, round.total);
    combine.send = scratch;
    combine.recv = Leads() ? scratch : nullptr;
    local_.Do(combine, running.deadline);

    std::byte* const mine = At(scratch, BeginOfMine(round), width);
    const std::vector<std::uint64_t> hosts = ByHost(round);
    const std::vector<std::uint64_t> members = OfMine(round);
    if (Leads()) {
      dtrun_op across = WireReduction(op, DTRUN_REDUCE_SCATTERV, round.total);
      across.send = scratch;
      across.recv = mine;
      across.recv_counts = hosts.data();
      wire_->Do(across, running.deadline);
      Finish(op, mine, hosts[static_cast<std::size_t>(topology_.host())]);
    }
    dtrun_op hand = StepOf(op, DTRUN_SCATTERV, members[static_cast<std::size_t>(topology_.place())]);
    hand.send = Leads() ? mine : nullptr;
    hand.send_counts = Leads() ? members.data() : nullptr;
    hand.recv = At(op.recv, hand.count == 0 ? 0 : at, width);
    local_.Do(hand, running.deadline);
  }
}

}  // namespace dtrun::comm
