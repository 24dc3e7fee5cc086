// The collectives over two layers that move data without combining it.

#include "core/comm/hierarchy/layered_calls.h"

#include <algorithm>
#include <cstring>

#include "core/comm/operation.h"
#include "sdk/algorithms/reducer.h"

namespace dtrun::comm {
namespace {

void Copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

LayeredCalls::LayeredCalls(const Topology& topology, Layer& local, Layer* wire)
    : topology_(topology), local_(local), wire_(wire), size_(topology.host_of.size()) {
  for (const std::vector<int>& ranks : topology.members)
    packed_.insert(packed_.end(), ranks.begin(), ranks.end());
}

LayeredCalls::~LayeredCalls() {
  if (scratch_ != nullptr) local_.Free(scratch_);
}

void LayeredCalls::Run(shm::Running& running) {
  switch (running.op->kind) {
    case DTRUN_ALLREDUCE: return Allreduce(running);
    case DTRUN_REDUCE: return Reduce(running);
    case DTRUN_BROADCAST: return Broadcast(running);
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV: return ReduceScatter(running);
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV: return Allgather(running);
    case DTRUN_BARRIER: return Barrier(running);
    default: return Exchange(running);
  }
}

LayeredCalls::Round LayeredCalls::RoundOf(const sdk::Parts& parts, std::uint64_t at,
                                          std::uint64_t most) const {
  Round round;
  round.parts.resize(size_);
  for (const std::size_t rank : packed_) {
    const std::uint64_t size = parts[rank].size;
    round.parts[rank] = {round.total, size <= at ? 0 : std::min(most, size - at)};
    round.total += round.parts[rank].size;
  }
  return round;
}

void LayeredCalls::Pack(const Round& round, const sdk::Parts& parts, std::uint64_t at, std::uint64_t width,
                        const void* data, std::byte* packed, bool back) const {
  for (std::size_t rank = 0; rank < size_; ++rank) {
    const sdk::Part& part = round.parts[rank];
    if (part.size == 0) continue;
    std::byte* const whole = At(data, parts[rank].begin + at, width);
    std::byte* const place = At(packed, part.begin, width);
    Copy(back ? whole : place, back ? place : whole, part.size * width);
  }
}

std::vector<std::uint64_t> LayeredCalls::ByHost(const Round& round) const {
  std::vector<std::uint64_t> sums(topology_.members.size());
  for (std::size_t rank = 0; rank < size_; ++rank) {
    sums[static_cast<std::size_t>(topology_.host_of[rank])] += round.parts[rank].size;
  }
  return sums;
}

std::vector<std::uint64_t> LayeredCalls::OfMine(const Round& round) const {
  std::vector<std::uint64_t> counts;
  for (const int rank : topology_.Mine()) counts.push_back(round.parts[static_cast<std::size_t>(rank)].size);
  return counts;
}

std::uint64_t LayeredCalls::BeginOfMine(const Round& round) const {
  return round.parts[static_cast<std::size_t>(topology_.Mine().front())].begin;
}

dtrun_op LayeredCalls::StepOf(const dtrun_op& op, std::int32_t kind, std::uint64_t count) {
  dtrun_op step;
  DTRUN_INIT(step);
  step.flags = DTRUN_OP_BLOCKING;
  step.kind = kind;
  step.dtype = op.dtype;
  step.root = sdk::IsRooted(kind) ? 0 : -1;
  step.peer = -1;
  step.count = count;
  step.scale = op.scale;
  return step;
}

dtrun_op LayeredCalls::WireReduction(const dtrun_op& op, std::int32_t kind, std::uint64_t count) {
  dtrun_op step = StepOf(op, kind, count);
  const bool sums = op.reduce == DTRUN_AVG || op.reduce == DTRUN_PREMUL_SUM;
  step.reduce = sums ? std::int32_t{DTRUN_SUM} : op.reduce;
  return step;
}

dtrun_op LayeredCalls::LocalReduction(const dtrun_op& op, std::uint64_t count) {
  dtrun_op step = StepOf(op, DTRUN_REDUCE, count);
  step.reduce = op.reduce == DTRUN_AVG ? std::int32_t{DTRUN_SUM} : op.reduce;
  return step;
}

void LayeredCalls::Finish(const dtrun_op& op, void* data, std::uint64_t count) const {
  if (op.reduce != DTRUN_AVG) return;
  const int ranks = topology_.size();
  if (op.dtype != DTRUN_FLOAT16 && op.dtype != DTRUN_BFLOAT16) {
    return algorithms::Divide(data, count, op.dtype, ranks);
  }
  constexpr std::uint64_t kBlock = 1024;
  float wide[kBlock];
  for (std::uint64_t at = 0; at < count; at += kBlock) {
    const std::uint64_t some = std::min(kBlock, count - at);
    auto* const narrow = static_cast<std::uint16_t*>(data) + at;
    kernels::Widen(wide, narrow, some, op.dtype);
    algorithms::Divide(wide, some, DTRUN_FLOAT32, ranks);
    kernels::Narrow(narrow, wide, some, op.dtype);
  }
}

std::byte* LayeredCalls::Scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    if (scratch_ != nullptr) local_.Free(std::exchange(scratch_, nullptr));
    scratch_bytes_ = 0;
    dtrun_mem_params params;
    DTRUN_INIT(params);
    params.bytes = bytes;
    params.alignment = 64;
    params.device_index = -1;
    scratch_ = static_cast<std::byte*>(local_.Alloc(params));
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

void LayeredCalls::Barrier(shm::Running& running) {
  const dtrun_op step = StepOf(*running.op, DTRUN_BARRIER, 0);
  local_.Do(step, running.deadline);
  if (Leads()) wire_->Do(step, running.deadline);
  local_.Do(step, running.deadline);
}

void LayeredCalls::Allgather(shm::Running& running) {
  const dtrun_op& op = *running.op;
  const std::uint64_t width = DtypeSize(op.dtype);
  const auto me = static_cast<std::size_t>(topology_.rank);
  const sdk::Parts parts = sdk::RecvParts(op, topology_.rank, topology_.size());
  const std::uint64_t most = std::max<std::uint64_t>(1, kScratchBytes / (size_ * width));
  std::byte* const scratch = Scratch(most * size_ * width);
  for (std::uint64_t at = 0; at == 0 || at < sdk::LongestOf(parts); at += most) {
    const Round round = RoundOf(parts, at, most);
    const std::vector<std::uint64_t> hosts = ByHost(round);
    const std::vector<std::uint64_t> members = OfMine(round);
    std::byte* const mine = At(scratch, BeginOfMine(round), width);
    dtrun_op collect = StepOf(op, DTRUN_GATHERV, round.parts[me].size);
    collect.send = At(op.send, collect.count == 0 ? 0 : at, width);
    collect.recv = Leads() ? mine : nullptr;
    collect.recv_counts = Leads() ? members.data() : nullptr;
    local_.Do(collect, running.deadline);
    if (Leads()) {
      dtrun_op across = StepOf(op, DTRUN_ALLGATHERV, round.total);
      across.send = mine;
      across.recv = scratch;
      across.recv_counts = hosts.data();
      wire_->Do(across, running.deadline);
    }
    dtrun_op spread = StepOf(op, DTRUN_BROADCAST, round.total);
    spread.recv = scratch;
    local_.Do(spread, running.deadline);
    Pack(round, parts, at, width, op.recv, scratch, true);
  }
}

std::vector<std::uint64_t> LayeredCalls::GatherRows(std::vector<std::uint64_t> row, shm::Running& running) {
  std::vector<std::uint64_t> rows(Leads() ? row.size() * topology_.Mine().size() : 0);
  dtrun_op collect = StepOf(*running.op, DTRUN_GATHER, row.size());
  collect.dtype = DTRUN_UINT64;
  collect.send = row.data();
  collect.recv = Leads() ? rows.data() : nullptr;
  local_.Do(collect, running.deadline);
  return rows;
}

std::uint64_t LayeredCalls::MostOfAll(std::uint64_t value, shm::Running& running) {
  dtrun_op op = StepOf(*running.op, DTRUN_ALLREDUCE, 1);
  op.dtype = DTRUN_UINT64;
  op.reduce = DTRUN_MAX;
  op.send = op.recv = &value;
  shm::Running most{&op, running.deadline};
  Allreduce(most);
  return value;
}

// Members hand their parts to the leader, packed. Leaders sort them by host, exchange, and sort what arrived
// by member.
void LayeredCalls::Exchange(shm::Running& running) {
  const dtrun_op& op = *running.op;
  const std::uint64_t width = DtypeSize(op.dtype);
  const sdk::Parts gives = sdk::SendParts(op, topology_.rank, topology_.size());
  const sdk::Parts takes = sdk::RecvParts(op, topology_.rank, topology_.size());
  const bool uneven = op.kind == DTRUN_ALLTOALLV || op.kind == DTRUN_GATHERV || op.kind == DTRUN_SCATTERV;
  const std::uint64_t longest =
      uneven ? MostOfAll(std::max(sdk::LongestOf(gives), sdk::LongestOf(takes)), running) : op.count;
  std::vector<std::uint64_t> row;
  for (const sdk::Parts* parts : {&gives, &takes}) {
    for (const sdk::Part& part : *parts) row.push_back(part.size);
  }
  const std::vector<std::uint64_t> rows = GatherRows(std::move(row), running);

  // The most that one rank gives to another in one round; equal on all ranks.
  const std::uint64_t pairs = size_ * topology_.MostMembers();
  const std::uint64_t most = std::max<std::uint64_t>(1, kScratchBytes / (pairs * width));
  const std::size_t block = most * pairs * width;
  std::byte* const own = Scratch(Leads() ? 3 * block : most * size_ * width);
  std::byte* const by_member = own + (Leads() ? block : 0);
  std::byte* const by_host = by_member + (Leads() ? block : 0);
  const std::size_t members = Leads() ? topology_.Mine().size() : 0;

  for (std::uint64_t at = 0; at == 0 || at < longest; at += most) {
    const Round give = RoundOf(gives, at, most);
    const Round take = RoundOf(takes, at, most);
    Pack(give, gives, at, width, op.send, own);
    // By member: what it gives, and what it takes.
    std::vector<Round> given, taken;
    std::vector<std::uint64_t> given_totals, taken_totals, given_begins, taken_begins;
    std::uint64_t given_total = 0;
    std::uint64_t taken_total = 0;
    for (std::size_t member = 0; member < members; ++member) {
      const std::uint64_t* const counts = rows.data() + 2 * size_ * member;
      given.push_back(RoundOf(sdk::GivenParts(counts, nullptr, topology_.size()), at, most));
      taken.push_back(RoundOf(sdk::GivenParts(counts + size_, nullptr, topology_.size()), at, most));
      given_begins.push_back(given_total);
      taken_begins.push_back(taken_total);
      given_totals.push_back(given.back().total);
      taken_totals.push_back(taken.back().total);
      given_total += given.back().total;
      taken_total += taken.back().total;
    }
    dtrun_op collect = StepOf(op, DTRUN_GATHERV, give.total);
    collect.send = own;
    collect.recv = Leads() ? by_member : nullptr;
    collect.recv_counts = Leads() ? given_totals.data() : nullptr;
    local_.Do(collect, running.deadline);

    if (Leads()) {
      std::vector<std::uint64_t> to_host(topology_.members.size()), from_host(topology_.members.size());
      std::uint64_t next = 0;
      for (std::size_t host = 0; host < to_host.size(); ++host) {
        for (std::size_t member = 0; member < members; ++member) {
          for (const int rank : topology_.members[host]) {
            const auto r = static_cast<std::size_t>(rank);
            const std::uint64_t count = given[member].parts[r].size;
            Copy(At(by_host, next, width),
                 At(by_member, given_begins[member] + given[member].parts[r].begin, width), count * width);
            next += count;
            to_host[host] += count;
            from_host[host] += taken[member].parts[r].size;
          }
        }
      }
      dtrun_op across = StepOf(op, DTRUN_ALLTOALLV, given_total);
      across.send = by_host;
      across.recv = by_member;
      across.send_counts = to_host.data();
      across.recv_counts = from_host.data();
      wire_->Do(across, running.deadline);
      next = 0;
      for (std::size_t host = 0; host < from_host.size(); ++host) {
        for (const int rank : topology_.members[host]) {
          const auto r = static_cast<std::size_t>(rank);
          for (std::size_t member = 0; member < members; ++member) {
            const std::uint64_t count = taken[member].parts[r].size;
            Copy(At(by_host, taken_begins[member] + taken[member].parts[r].begin, width),
                 At(by_member, next, width), count * width);
            next += count;
          }
        }
      }
    }
    dtrun_op hand = StepOf(op, DTRUN_SCATTERV, take.total);
    hand.send = Leads() ? by_host : nullptr;
    hand.send_counts = Leads() ? taken_totals.data() : nullptr;
    hand.recv = own;
    local_.Do(hand, running.deadline);
    Pack(take, takes, at, width, op.recv, own, true);
  }
}

}  // namespace dtrun::comm
