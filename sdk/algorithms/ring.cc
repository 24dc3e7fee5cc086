// Reduce-scatter and allreduce round a ring, pipelined.
//
// Block r is combined along the ring and finished by rank r. The vector is processed in groups of a
// few segments of every block. Within a group a segment is sent while the next one is combined, and
// the working memory stays in the cache. P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce
// algorithms for clusters of workstations, JPDC 69(2), 2009.
#include <algorithm>
#include <array>

#include "collectives.h"

namespace dtrun::algorithms {
namespace {

constexpr std::size_t kRingSegmentBytes = 256 << 10;
constexpr std::size_t kRingLanes = 4;  // segments of one block in flight

class Ring {
 public:
  // Block b of `send` is blocks[b]. This rank's finished block is written to `mine`. The finished
  // blocks of all ranks are written to `all`, in the layout of `send`, unless it is null.
  Ring(Call& call, const Reducer& reducer, const void* send, const sdk::Parts& blocks, void* mine, void* all)
      : call_(call),
        reducer_(reducer),
        width_(reducer.width()),
        blocks_(blocks),
        send_(static_cast<const std::byte*>(send)),
        mine_(static_cast<std::byte*>(mine)),
        all_(static_cast<std::byte*>(all)),
        in_place_(send == all),
        spread_(call) {
    for (const Part& block : blocks_) largest_ = std::max(largest_, block.size);
    // Blocks smaller than a group are split too, so that transfers can overlap.
    const std::size_t quarter = (largest_ + kRingLanes - 1) / kRingLanes * width_;
    segment_ =
        std::max<std::size_t>(1, std::clamp(quarter, kRingSegmentBytes / 8, kRingSegmentBytes) / width_);
    const std::size_t slot = std::min(segment_, largest_) * width_;
    for (Lane& lane : lanes_) {
      for (Slot& one : lane.slots) one.memory = call_.Scratch(slot);
    }
  }

  void Run() {
    for (first_ = 0; first_ * segment_ < largest_; first_ += kRingLanes) {
      Start();
      for (int step = 0; step <= LastStep(); ++step) {
        for (std::size_t lane = 0; lane < kRingLanes; ++lane) Combine(step, lane);
      }
      for (Lane& lane : lanes_) {
        call_.Wait(lane.first_send);
        for (Slot& slot : lane.slots) {
          if (slot.sending) call_.Wait(slot.send);
          slot.sending = false;
        }
        lane.first_send = nullptr;
      }
      for (int step = 0; all_ != nullptr && step <= LastStep(); ++step) {
        for (std::size_t lane = 0; lane < kRingLanes; ++lane) Collect(step, lane);
      }
    }
    spread_.Finish();
  }

 private:
  struct Slot {
    std::byte* memory = nullptr;
    Call::Message recv = nullptr;
    Call::Message send = nullptr;
    bool sending = false;
  };
  // Segment first_ + index of every block; two slots, so that one is received while the other is sent.
  struct Lane {
    std::array<Slot, 2> slots;
    Call::Message first_send = nullptr;
    Call::Message collect = nullptr;
    Call::Message next_collect = nullptr;
  };

  int LastStep() const { return call_.size() - 2; }
  int Left() const { return call_.Neighbour(-1); }
  int Right() const { return call_.Neighbour(1); }
  // The block received from the left in a step of either phase.
  int CombinedIn(int step) const { return call_.Neighbour(-2 - step); }
  int CollectedIn(int step) const { return call_.Neighbour(-1 - step); }
  // The lane's piece of a block, in elements of the whole vector; its size may be 0.
  Part Piece(int block, std::size_t lane) const {
    const Part& whole = blocks_[static_cast<std::size_t>(block)];
    const std::size_t at = std::min((first_ + lane) * segment_, whole.size);
    return {whole.begin + at, std::min(segment_, whole.size - at)};
  }

  void PostCombine(int step, std::size_t lane) {
    const Part piece = Piece(CombinedIn(step), lane);
    Slot& slot = lanes_[lane].slots[static_cast<std::size_t>(step) % 2];
    if (slot.sending) call_.Wait(slot.send);
    slot.sending = false;
    if (piece.size > 0) slot.recv = call_.Recv(Left(), slot.memory, piece.size * width_);
  }

  void Start() {
    for (int step = 0; step <= std::min(1, LastStep()); ++step) {
      for (std::size_t lane = 0; lane < kRingLanes; ++lane) PostCombine(step, lane);
    }
    for (std::size_t lane = 0; lane < kRingLanes; ++lane) {
      const Part piece = Piece(call_.Neighbour(-1), lane);
      if (piece.size > 0) {
        lanes_[lane].first_send = call_.Send(Right(), send_ + piece.begin * width_, piece.size * width_);
      }
    }
  }

  void Combine(int step, std::size_t lane) {
    const Part piece = Piece(CombinedIn(step), lane);
    Slot& slot = lanes_[lane].slots[static_cast<std::size_t>(step) % 2];
    if (piece.size > 0) call_.Wait(slot.recv);
    if (step >= 1 && step < LastStep()) PostCombine(step + 1, lane);
    const bool last = step == LastStep();
    if (last) PostCollect(0, lane);
    if (piece.size == 0) return;
    std::byte* out = slot.memory;
    if (last) out = mine_ + (piece.begin - blocks_[static_cast<std::size_t>(call_.rank())].begin) * width_;
    reducer_.Combine(out, slot.memory, send_ + piece.begin * width_, piece.size);
    if (!last) {
      slot.send = call_.Send(Right(), out, piece.size * width_);
      slot.sending = true;
      return;
    }
    reducer_.End(out, out, piece.size);
    if (all_ != nullptr) spread_.Add(call_.Send(Right(), out, piece.size * width_));
  }

  void PostCollect(int step, std::size_t lane) {
    if (all_ == nullptr) return;
    const Part piece = Piece(CollectedIn(step), lane);
    if (piece.size == 0) return;
    Lane& one = lanes_[lane];
    if (step == 0 && in_place_) {  // it is written to the source of the first send
      call_.Wait(one.first_send);
      one.first_send = nullptr;
    }
    one.next_collect = call_.Recv(Left(), all_ + piece.begin * width_, piece.size * width_);
  }

  void Collect(int step, std::size_t lane) {
    const Part piece = Piece(CollectedIn(step), lane);
    Lane& one = lanes_[lane];
    one.collect = one.next_collect;
    if (step < LastStep()) PostCollect(step + 1, lane);
    if (piece.size == 0) return;
    call_.Wait(one.collect);
    if (step < LastStep()) spread_.Add(call_.Send(Right(), all_ + piece.begin * width_, piece.size * width_));
  }

  Call& call_;
  const Reducer& reducer_;
  const std::size_t width_;
  const sdk::Parts& blocks_;
  const std::byte* const send_;
  std::byte* const mine_;
  std::byte* const all_;
  const bool in_place_;
  std::size_t largest_ = 0;  // elements of the largest block
  std::size_t segment_ = 1;  // elements
  std::size_t first_ = 0;    // segment of the group's first lane
  std::array<Lane, kRingLanes> lanes_;
  Messages spread_;
};

// The elements, multiplied by the factor if the reduction has one.
const void* Scaled(Call& call, const Reducer& reducer, const void* send, const sdk::Parts& blocks) {
  if (reducer.raw()) return send;
  std::size_t end = 0;
  for (const Part& block : blocks) end = std::max(end, block.end());
  std::byte* const scaled = call.Scratch(end * reducer.width());
  for (const Part& block : blocks) {
    const std::size_t at = block.begin * reducer.width();
    reducer.Begin(scaled + at, static_cast<const std::byte*>(send) + at, block.size);
  }
  return scaled;
}

}  // namespace

void RingAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count) {
  const sdk::Parts blocks = sdk::EvenParts(count, call.size());
  const std::size_t mine = blocks[static_cast<std::size_t>(call.rank())].begin * reducer.width();
  Ring(call, reducer, Scaled(call, reducer, send, blocks), blocks, static_cast<std::byte*>(recv) + mine, recv)
      .Run();
}

void RingReduceScatter(Call& call, const Reducer& reducer, const void* send, void* recv,
                       const sdk::Parts& parts) {
  Ring(call, reducer, Scaled(call, reducer, send, parts), parts, recv, nullptr).Run();
}

}  // namespace dtrun::algorithms
