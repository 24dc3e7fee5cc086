// All-to-all by pairwise exchange: Thakur et al. 2005, section 4.6; and the barrier.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "collectives.h"

namespace dtrun::algorithms {
namespace {

constexpr std::size_t kPairs = 4;  // exchanges in flight

// In place: a received part waits in scratch memory until the local part was sent.
void InPlaceAlltoall(Call& call, std::byte* data, const sdk::Parts& parts) {
  std::size_t largest = 0;
  for (const Part& part : parts) largest = std::max(largest, part.size);
  std::byte* const theirs = call.Scratch(largest);
  // In round d each pair of ranks with sum d (mod size) exchanges, so that no rank waits for a
  // third.
  for (int round = 0; round < call.size(); ++round) {
    const int peer = (round - call.rank() + call.size()) % call.size();
    const Part& part = parts[static_cast<std::size_t>(peer)];
    if (peer == call.rank() || part.size == 0) continue;
    call.Exchange(peer, data + part.begin, part.size, peer, theirs, part.size);
    std::memcpy(data + part.begin, theirs, part.size);
  }
}

}  // namespace

void PairwiseAlltoall(Call& call, const void* send, const sdk::Parts& send_parts, void* recv,
                      const sdk::Parts& recv_parts) {
  auto* const out = static_cast<std::byte*>(recv);
  if (send == recv) return InPlaceAlltoall(call, out, recv_parts);
  const auto* const in = static_cast<const std::byte*>(send);
  struct Pair {
    Call::Message give = nullptr;
    Call::Message take = nullptr;
  };
  std::array<Pair, kPairs> pairs;
  const auto finish = [&](Pair& pair) {
    call.Wait(std::exchange(pair.take, nullptr));
    call.Wait(std::exchange(pair.give, nullptr));
  };
  for (int step = 1; step < call.size(); ++step) {
    Pair& pair = pairs[static_cast<std::size_t>(step) % kPairs];
    finish(pair);
    const int from = call.Neighbour(-step);
    const int to = call.Neighbour(step);
    const Part& taken = recv_parts[static_cast<std::size_t>(from)];
    const Part& given = send_parts[static_cast<std::size_t>(to)];
    if (taken.size > 0) pair.take = call.Recv(from, out + taken.begin, taken.size);
    if (given.size > 0) pair.give = call.Send(to, in + given.begin, given.size);
  }
  const auto me = static_cast<std::size_t>(call.rank());
  if (recv_parts[me].size > 0) {
    std::memcpy(out + recv_parts[me].begin, in + send_parts[me].begin, recv_parts[me].size);
  }
  for (Pair& pair : pairs) finish(pair);
}

// D. Hensgen, R. Finkel, U. Manber: Two Algorithms for Barrier Synchronization, IJPP 17(1), 1988.
void DisseminationBarrier(Call& call) {
  for (int distance = 1; distance < call.size(); distance <<= 1) {
    call.Exchange(call.Neighbour(distance), nullptr, 0, call.Neighbour(-distance), nullptr, 0);
  }
}

}  // namespace dtrun::algorithms
