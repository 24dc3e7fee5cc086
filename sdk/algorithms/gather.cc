// Gather and scatter: a binomial tree for few bytes, else each rank exchanges directly with the
// root.
#include <algorithm>
#include <cstring>

#include "collectives.h"

namespace dtrun::algorithms {
namespace {

// The number of ranks in the binomial subtree at `place`: those from `place` on.
int Family(int place, int size) {
  const int bit = place == 0 ? size : place & -place;
  return std::min(bit, size - place);
}

void CopyUnlessThere(void* to, const void* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

void TreeGather(Call& call, const void* send, void* recv, std::size_t bytes, int root) {
  const int place = call.Neighbour(-root);  // the root is at place 0
  const auto rank_at = [&](int other) { return (other + root) % call.size(); };
  const int family = Family(place, call.size());
  // Part i belongs to place + i.
  std::byte* const parts = call.Scratch(static_cast<std::size_t>(family) * bytes);
  std::memcpy(parts, send, bytes);
  const auto part = [&](int index) { return parts + static_cast<std::size_t>(index) * bytes; };
  for (int bit = 1; bit < family; bit <<= 1) {
    const int child = place + bit;
    const auto count = static_cast<std::size_t>(Family(child, call.size()));
    call.Wait(call.Recv(rank_at(child), part(bit), count * bytes));
  }
  if (place != 0) {
    const int parent = place & (place - 1);
    return call.Wait(call.Send(rank_at(parent), parts, static_cast<std::size_t>(family) * bytes));
  }
  auto* const out = static_cast<std::byte*>(recv);
  for (int index = 0; index < call.size(); ++index) {
    std::memcpy(out + static_cast<std::size_t>(rank_at(index)) * bytes, part(index), bytes);
  }
}

void TreeScatter(Call& call, const void* send, void* recv, std::size_t bytes, int root) {
  const int place = call.Neighbour(-root);
  const auto rank_at = [&](int other) { return (other + root) % call.size(); };
  const int family = Family(place, call.size());
  std::byte* const parts = call.Scratch(static_cast<std::size_t>(family) * bytes);
  const auto part = [&](int index) { return parts + static_cast<std::size_t>(index) * bytes; };
  if (place == 0) {
    const auto* const in = static_cast<const std::byte*>(send);
    for (int index = 0; index < call.size(); ++index) {
      std::memcpy(part(index), in + static_cast<std::size_t>(rank_at(index)) * bytes, bytes);
    }
  } else {
    const int parent = place & (place - 1);
    call.Wait(call.Recv(rank_at(parent), parts, static_cast<std::size_t>(family) * bytes));
  }
  int bit = 1;
  while (bit < family) bit <<= 1;
  Messages gives(call);
  for (bit >>= 1; bit > 0; bit >>= 1) {
    const int child = place + bit;
    const auto count = static_cast<std::size_t>(Family(child, call.size()));
    gives.Add(call.Send(rank_at(child), part(bit), count * bytes));
  }
  CopyUnlessThere(recv, parts, bytes);
  gives.Finish();
}

void LinearGather(Call& call, const void* send, std::size_t bytes, void* recv, const sdk::Parts& parts,
                  int root) {
  if (call.rank() != root) {
    if (bytes > 0) call.Wait(call.Send(root, send, bytes));
    return;
  }
  auto* const out = static_cast<std::byte*>(recv);
  Messages takes(call);
  for (int step = 1; step < call.size(); ++step) {
    const int from = call.Neighbour(step);
    const Part& part = parts[static_cast<std::size_t>(from)];
    if (part.size > 0) takes.Add(call.Recv(from, out + part.begin, part.size));
  }
  const Part& own = parts[static_cast<std::size_t>(root)];
  CopyUnlessThere(out + own.begin, send, own.size);
  takes.Finish();
}

void LinearScatter(Call& call, const void* send, const sdk::Parts& parts, void* recv, std::size_t bytes,
                   int root) {
  if (call.rank() != root) {
    if (bytes > 0) call.Wait(call.Recv(root, recv, bytes));
    return;
  }
  const auto* const in = static_cast<const std::byte*>(send);
  Messages gives(call);
  for (int step = 1; step < call.size(); ++step) {
    const int to = call.Neighbour(step);
    const Part& part = parts[static_cast<std::size_t>(to)];
    if (part.size > 0) gives.Add(call.Send(to, in + part.begin, part.size));
  }
  const Part& own = parts[static_cast<std::size_t>(root)];
  CopyUnlessThere(recv, in + own.begin, own.size);
  gives.Finish();
}

}  // namespace dtrun::algorithms
