// Allgather by Bruck's algorithm and round a ring.
//
// J. Bruck et al.: Efficient Algorithms for All-to-All Communications in Multiport
// Message-Passing Systems, IEEE TPDS 8(11), 1997; Thakur et al. 2005, section 4.1.
#include <algorithm>
#include <cstring>

#include "collectives.h"

namespace dtrun::algorithms {

void BruckAllgather(Call& call, const void* send, void* recv, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(call.size());
  const auto me = static_cast<std::size_t>(call.rank());
  // Part i of `parts` belongs to rank me + i.
  std::byte* const parts = call.Scratch(ranks * bytes);
  std::memcpy(parts, send, bytes);
  for (int have = 1; have < call.size(); have <<= 1) {
    const std::size_t size = static_cast<std::size_t>(std::min(have, call.size() - have)) * bytes;
    call.Exchange(call.Neighbour(-have), parts, size, call.Neighbour(have),
                  parts + static_cast<std::size_t>(have) * bytes, size);
  }
  auto* const out = static_cast<std::byte*>(recv);
  std::memcpy(out + me * bytes, parts, (ranks - me) * bytes);
  std::memcpy(out, parts + (ranks - me) * bytes, me * bytes);
}

namespace {

constexpr std::size_t kPartSegmentBytes = 512 << 10;
constexpr std::size_t kMostSegments = 256;  // per part
constexpr std::size_t kAhead = 4;           // receives posted

// One segment of one part, in the order of arrival from the left.
struct Item {
  std::size_t begin;
  std::size_t size;
};

// The part that moves one step further round the ring with every `step`, split into segments.
std::vector<Item> ItemsOf(const sdk::Parts& parts, int rank, int steps) {
  const int ranks = static_cast<int>(parts.size());
  std::vector<Item> items;
  for (int step = 0; step < steps; ++step) {
    const Part& part = parts[static_cast<std::size_t>((rank - step + ranks) % ranks)];
    const std::size_t segment = std::max(kPartSegmentBytes, (part.size + kMostSegments - 1) / kMostSegments);
    for (std::size_t at = 0; at < part.size; at += segment) {
      items.push_back({part.begin + at, std::min(segment, part.size - at)});
    }
  }
  return items;
}

}  // namespace

void RingAllgather(Call& call, void* recv, const sdk::Parts& parts, int full) {
  auto* const base = static_cast<std::byte*>(recv);
  const int left = call.Neighbour(-1);
  const int right = call.Neighbour(1);
  const std::vector<Item> items = ItemsOf(parts, left, call.size() - 1);
  // The last part to arrive has visited every rank.
  const std::size_t passed_on = ItemsOf(parts, left, call.size() - 2).size();
  std::vector<Call::Message> takes(items.size());
  const bool takes_any = call.rank() != full;
  Messages gives(call);
  const auto give = [&](const Item& item) {
    if (right != full) gives.Add(call.Send(right, base + item.begin, item.size));
  };
  std::size_t posted = 0;
  const auto post = [&](std::size_t end) {
    for (; posted < std::min(end, items.size()); ++posted) {
      takes[posted] = call.Recv(left, base + items[posted].begin, items[posted].size);
    }
  };
  if (takes_any) post(kAhead);
  for (const Item& item : ItemsOf(parts, call.rank(), 1)) give(item);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (takes_any) {
      post(i + kAhead);
      call.Wait(takes[i]);
    }
    if (i < passed_on) give(items[i]);
  }
  gives.Finish();
}

}  // namespace dtrun::algorithms
