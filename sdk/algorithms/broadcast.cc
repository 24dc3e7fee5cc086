// Broadcast: Thakur et al. 2005, section 4.2.
#include <algorithm>

#include "collectives.h"

namespace dtrun::algorithms {

void TreeBroadcast(Call& call, void* data, std::size_t bytes, int root) {
  const int place = call.Neighbour(-root);  // the root is at place 0
  const auto rank_at = [&](int other) { return (other + root) % call.size(); };
  int bit = 1;
  for (; bit < call.size(); bit <<= 1) {
    if ((place & bit) == 0) continue;
    call.Wait(call.Recv(rank_at(place - bit), data, bytes));
    break;
  }
  Messages gives(call);
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (place + bit < call.size()) gives.Add(call.Send(rank_at(place + bit), data, bytes));
  }
  gives.Finish();
}

void DealtBroadcast(Call& call, void* data, std::size_t bytes, int root) {
  const sdk::Parts parts = sdk::EvenParts(bytes, call.size());
  auto* const base = static_cast<std::byte*>(data);
  const auto place = [&](int rank) { return base + parts[static_cast<std::size_t>(rank)].begin; };
  const auto size = [&](int rank) { return parts[static_cast<std::size_t>(rank)].size; };
  Messages gives(call);
  if (call.rank() == root) {
    for (int step = 1; step < call.size(); ++step) {
      const int to = call.Neighbour(step);
      gives.Add(call.Send(to, place(to), size(to)));
    }
  } else {
    call.Wait(call.Recv(root, place(call.rank()), size(call.rank())));
  }
  RingAllgather(call, data, parts, root);
  gives.Finish();
}

}  // namespace dtrun::algorithms
