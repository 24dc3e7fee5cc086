// What each pair of ranks swaps, and which collectives go this way.
#include <cstring>
#include <deque>
#include <memory>

#include "direct.h"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"
#include "messenger.h"
#include "transfer.h"

namespace dtrun::gloo_plugin {
namespace {

// Of all ranks' vectors together: smaller reductions take fewer messages by dtrun::algorithms.
constexpr std::size_t kLargeTotal = 128 << 10;

}  // namespace

Direct::Direct(const dtrun_op& given, std::uint64_t own_slot)
    : op(given), slot(own_slot), width(kernels::ElementBytes(given.dtype)) {}

bool Direct::Serves(const dtrun_op& op, int ranks) {
  switch (op.kind) {
    case DTRUN_BARRIER:
    case DTRUN_BROADCAST: return false;
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE:
      return op.count * kernels::ElementBytes(op.dtype) * static_cast<std::size_t>(ranks) > kLargeTotal;
    default: return true;
  }
}

void Direct::Run(Mesh& mesh, Operation& operation) const {
  if (sdk::IsReduction(op.kind)) return Reduction(mesh, operation);
  Exchange(mesh, operation);
}

void Direct::Exchange(Mesh& mesh, Operation& operation) const {
  const sdk::Parts sends = sdk::InBytes(sdk::SendParts(op, mesh.rank(), mesh.size()), width);
  const sdk::Parts recvs = sdk::InBytes(sdk::RecvParts(op, mesh.rank(), mesh.size()), width);
  const auto* send = static_cast<const std::byte*>(op.send);
  auto* const recv = static_cast<std::byte*>(op.recv);
  std::unique_ptr<std::byte[]> copy;
  // Parts that arrive in place would overwrite those that have not left yet.
  if ((op.kind == DTRUN_ALLTOALL || op.kind == DTRUN_ALLTOALLV) && send == recv) {
    const std::size_t extent = sdk::EndOf(sends);
    copy = std::make_unique_for_overwrite<std::byte[]>(extent);
    if (extent > 0) std::memcpy(copy.get(), send, extent);
    send = copy.get();
  }
  std::deque<Transfer> gives;
  std::deque<Transfer> takes;
  for (int step = 1; step < mesh.size(); ++step) {
    const int from = (mesh.rank() + step) % mesh.size();
    if (const sdk::Part& range = recvs[static_cast<std::size_t>(from)]; range.size > 0) {
      takes.emplace_back(mesh, from, recv + range.begin, range.size)
          .Recv(SlotOf(slot, range.size), 0, range.size);
    }
    const int to = (mesh.rank() - step + mesh.size()) % mesh.size();
    if (const sdk::Part& range = sends[static_cast<std::size_t>(to)]; range.size > 0) {
      gives.emplace_back(mesh, to, send + range.begin, range.size)
          .Send(SlotOf(slot, range.size), 0, range.size);
    }
  }
  const sdk::Part& mine = sends[static_cast<std::size_t>(mesh.rank())];
  if (mine.size > 0) {
    std::byte* const place = recv + recvs[static_cast<std::size_t>(mesh.rank())].begin;
    if (place != send + mine.begin) std::memcpy(place, send + mine.begin, mine.size);
  }
  for (Transfer& take : takes) take.FinishRecvs(operation);
  for (Transfer& give : gives) give.FinishSends(operation);
}

}  // namespace dtrun::gloo_plugin
