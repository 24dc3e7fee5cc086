// Reduce, and reduce-scatter of few bytes.
#include <cstring>

#include "collectives.h"

namespace dtrun::algorithms {

// Combines everything on every rank and keeps one part: for few bytes the number of steps
// dominates.
void PackedReduceScatter(Call& call, const Reducer& reducer, const void* send, void* recv,
                         const sdk::Parts& parts) {
  const std::size_t width = reducer.width();
  std::size_t total = 0;
  for (const Part& part : parts) total += part.size;
  std::byte* const packed = call.Scratch(total * width);
  std::size_t at = 0;
  std::size_t mine = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const Part& part = parts[index];
    if (static_cast<int>(index) == call.rank()) mine = at;
    if (part.size == 0) continue;
    std::memcpy(packed + at * width, static_cast<const std::byte*>(send) + part.begin * width,
                part.size * width);
    at += part.size;
  }
  if (total * width <= kDoublingBytes) {
    DoublingAllreduce(call, reducer, packed, packed, total);
  } else {
    HalvingAllreduce(call, reducer, packed, packed, total);
  }
  const std::size_t bytes = parts[static_cast<std::size_t>(call.rank())].size * width;
  if (bytes > 0) std::memcpy(recv, packed + mine * width, bytes);
}

// A binomial tree: Thakur et al. 2005, section 4.4.
void TreeReduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count,
                int root) {
  const std::size_t bytes = count * reducer.partial_width();
  const int place = call.Neighbour(-root);  // the root is at place 0
  const auto rank_at = [&](int other) { return (other + root) % call.size(); };
  std::byte* const sum = call.Scratch(bytes);
  std::byte* const theirs = call.Scratch(bytes);
  reducer.Begin(sum, send, count);
  for (int bit = 1; bit < call.size(); bit <<= 1) {
    if ((place & bit) != 0) return call.Wait(call.Send(rank_at(place - bit), sum, bytes));
    if (place + bit >= call.size()) continue;
    call.Wait(call.Recv(rank_at(place + bit), theirs, bytes));
    reducer.Combine(sum, sum, theirs, count);
  }
  reducer.End(recv, sum, count);
}

// Thakur et al. 2005, section 4.4: each rank combines a part, the root collects them.
void ScatteredReduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count,
                     int root) {
  const std::size_t width = reducer.width();
  sdk::Parts parts = sdk::EvenParts(count, call.size());
  const Part mine = parts[static_cast<std::size_t>(call.rank())];
  // Not into `recv`: in place, that is still to be sent.
  std::byte* const part = call.Scratch(mine.size * width);
  if (reducer.narrow()) {
    DirectReduceScatter(call, reducer, send, part, parts);
  } else {
    RingReduceScatter(call, reducer, send, part, parts);
  }
  for (Part& each : parts) each = {each.begin * width, each.size * width};
  LinearGather(call, part, mine.size * width, recv, parts, root);
}

}  // namespace dtrun::algorithms
