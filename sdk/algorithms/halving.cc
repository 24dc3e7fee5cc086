// Rabenseifner's allreduce: Thakur et al. 2005, section 4.5.
#include <algorithm>

#include "collectives.h"
#include "fold.h"

namespace dtrun::algorithms {

void HalvingAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count) {
  const std::size_t wide = reducer.partial_width();
  const std::size_t width = reducer.width();
  const Fold fold(call.rank(), call.size());
  auto* const result = static_cast<std::byte*>(recv);
  std::byte* const sum = reducer.narrow() ? call.Scratch(count * wide) : result;
  reducer.Begin(sum, send, count);
  if (fold.gives()) {
    call.Wait(call.Send(call.rank() + 1, sum, count * wide));
    call.Wait(call.Recv(call.rank() + 1, recv, count * width));
    return;
  }
  std::byte* const theirs = call.Scratch((fold.takes() ? count : count - count / 2) * wide);
  if (fold.takes()) {
    call.Wait(call.Recv(call.rank() - 1, theirs, count * wide));
    reducer.Combine(sum, theirs, sum, count);
  }

  // Each step sends half of the part that this rank still has to combine.
  std::vector<Part> given;
  Part mine{0, count};
  for (int bit = fold.players / 2; bit > 0; bit >>= 1) {
    const int peer = fold.RankOf(fold.number ^ bit);
    const Part low{mine.begin, mine.size / 2};
    const Part high{low.end(), mine.size - low.size};
    const bool keep_low = peer > call.rank();
    mine = keep_low ? low : high;
    given.push_back(keep_low ? high : low);
    call.Exchange(peer, sum + given.back().begin * wide, given.back().size * wide, peer, theirs,
                  mine.size * wide);
    std::byte* const place = sum + mine.begin * wide;
    reducer.Combine(place, keep_low ? place : theirs, keep_low ? theirs : place, mine.size);
  }
  reducer.End(result + mine.begin * width, sum + mine.begin * wide, mine.size);

  // In reverse: each step receives the finished half that was sent.
  for (int bit = 1; bit < fold.players; bit <<= 1) {
    const int peer = fold.RankOf(fold.number ^ bit);
    const Part other = given.back();
    given.pop_back();
    call.Exchange(peer, result + mine.begin * width, mine.size * width, peer, result + other.begin * width,
                  other.size * width);
    mine = {std::min(mine.begin, other.begin), mine.size + other.size};
  }
  if (fold.takes()) call.Wait(call.Send(call.rank() - 1, recv, count * width));
}

}  // namespace dtrun::algorithms
