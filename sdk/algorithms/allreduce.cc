// Allreduce by recursive doubling: Thakur et al. 2005, section 4.5.
#include "collectives.h"
#include "fold.h"

namespace dtrun::algorithms {

void DoublingAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count) {
  const std::size_t bytes = count * reducer.partial_width();
  const Fold fold(call.rank(), call.size());
  void* const sum = reducer.narrow() ? call.Scratch(bytes) : recv;
  reducer.Begin(sum, send, count);
  if (fold.gives()) {
    call.Wait(call.Send(call.rank() + 1, sum, bytes));
    call.Wait(call.Recv(call.rank() + 1, recv, count * reducer.width()));
    return;
  }
  std::byte* const theirs = call.Scratch(bytes);
  if (fold.takes()) {
    call.Wait(call.Recv(call.rank() - 1, theirs, bytes));
    reducer.Combine(sum, theirs, sum, count);
  }
  for (int bit = 1; bit < fold.players; bit <<= 1) {
    const int peer = fold.RankOf(fold.number ^ bit);
    call.Exchange(peer, sum, bytes, peer, theirs, bytes);
    // Combine in the same order on both sides, so that both get the same bits.
    if (peer < call.rank()) {
      reducer.Combine(sum, theirs, sum, count);
    } else {
      reducer.Combine(sum, sum, theirs, count);
    }
  }
  reducer.End(recv, sum, count);
  if (fold.takes()) call.Wait(call.Send(call.rank() - 1, recv, count * reducer.width()));
}

}  // namespace dtrun::algorithms
