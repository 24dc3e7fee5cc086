// The collectives over two layers that move data without combining it.
#include <algorithm>
#include <cstring>

#include "core/comm/hierarchy/layered_calls.h"
#include "core/comm/operation.h"

namespace dtrun::comm {
namespace {

void Copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

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
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const sdk::Part& part = round.parts[rank];
      if (part.size == 0) continue;
      Copy(At(op.recv, parts[rank].begin + at, width), At(scratch, part.begin, width), part.size * width);
    }
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
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const sdk::Part& part = give.parts[rank];
      if (part.size == 0) continue;
      Copy(At(own, part.begin, width), At(op.send, gives[rank].begin + at, width), part.size * width);
    }
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
    for (std::size_t rank = 0; rank < size_; ++rank) {
      const sdk::Part& part = take.parts[rank];
      if (part.size == 0) continue;
      Copy(At(op.recv, takes[rank].begin + at, width), At(own, part.begin, width), part.size * width);
    }
  }
}

}  // namespace dtrun::comm
