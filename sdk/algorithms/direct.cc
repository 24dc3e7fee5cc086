// Reduce-scatter and allreduce by direct exchange: rank r receives part r of every rank.
//
// Sends as many bytes as a ring, but elements travel unchanged and are combined all at once, in
// rank order. Processes groups of segments as ring.cc does.
#include <algorithm>

#include "collectives.h"

namespace dtrun::algorithms {
namespace {

constexpr std::size_t kDirectLanes = 4;       // segments of one part in flight
constexpr std::size_t kGroupBytes = 2 << 20;  // for all ranks' segments of a group
constexpr std::size_t kSmallestSegment = 16 << 10;
constexpr std::size_t kLargestSegment = 256 << 10;

class Direct {
 public:
  // Arguments as for Ring.
  Direct(Call& call, const Reducer& reducer, const void* send, const sdk::Parts& parts, void* mine, void* all)
      : call_(call),
        reducer_(reducer),
        width_(reducer.width()),
        parts_(parts),
        send_(static_cast<const std::byte*>(send)),
        mine_(static_cast<std::byte*>(mine)),
        all_(static_cast<std::byte*>(all)),
        gives_(call),
        spreads_(call),
        takes_(parts.size() * kDirectLanes),
        sources_(parts.size()) {
    for (const Part& part : parts_) largest_ = std::max(largest_, part.size);
    const std::size_t share = kGroupBytes / kDirectLanes / parts_.size();
    segment_ = std::max<std::size_t>(1, std::clamp(share, kSmallestSegment, kLargestSegment) / width_);
    slot_ = std::min(segment_, parts_[static_cast<std::size_t>(call.rank())].size) * width_;
    scratch_ = call.Scratch(slot_ * kDirectLanes * parts_.size());
  }

  void Run() {
    for (first_ = 0; first_ * segment_ < largest_; first_ += kDirectLanes) {
      Exchange();
      for (std::size_t lane = 0; lane < kDirectLanes; ++lane) Combine(lane);
      gives_.Finish();  // in place, the next step overwrites the sent data
      if (all_ != nullptr) Collect();
    }
    spreads_.Finish();
  }

 private:
  Part Piece(int rank, std::size_t lane) const {
    const Part& whole = parts_[static_cast<std::size_t>(rank)];
    const std::size_t at = std::min((first_ + lane) * segment_, whole.size);
    return {whole.begin + at, std::min(segment_, whole.size - at)};
  }
  std::size_t Index(int rank, std::size_t lane) const {
    return static_cast<std::size_t>(rank) * kDirectLanes + lane;
  }

  void Exchange() {
    for (int step = 1; step < call_.size(); ++step) {
      const int from = call_.Neighbour(-step);
      const int to = call_.Neighbour(step);
      for (std::size_t lane = 0; lane < kDirectLanes; ++lane) {
        const Part mine = Piece(call_.rank(), lane);
        const std::size_t index = Index(from, lane);
        if (mine.size > 0) takes_[index] = call_.Recv(from, scratch_ + index * slot_, mine.size * width_);
        const Part theirs = Piece(to, lane);
        if (theirs.size > 0) gives_.Add(call_.Send(to, send_ + theirs.begin * width_, theirs.size * width_));
      }
    }
  }

  void Combine(std::size_t lane) {
    const Part piece = Piece(call_.rank(), lane);
    if (piece.size == 0) return;
    for (int rank = 0; rank < call_.size(); ++rank) {
      const std::size_t index = Index(rank, lane);
      const bool own = rank == call_.rank();
      if (!own) call_.Wait(takes_[index]);
      sources_[static_cast<std::size_t>(rank)] =
          own ? send_ + piece.begin * width_ : scratch_ + index * slot_;
    }
    std::byte* const out =
        mine_ + (piece.begin - parts_[static_cast<std::size_t>(call_.rank())].begin) * width_;
    reducer_.CombineAll(out, sources_.data(), piece.size);
    for (int step = 1; all_ != nullptr && step < call_.size(); ++step) {
      spreads_.Add(call_.Send(call_.Neighbour(step), out, piece.size * width_));
    }
  }

  void Collect() {
    Messages collects(call_);
    for (int step = 1; step < call_.size(); ++step) {
      const int from = call_.Neighbour(-step);
      for (std::size_t lane = 0; lane < kDirectLanes; ++lane) {
        const Part piece = Piece(from, lane);
        if (piece.size > 0) collects.Add(call_.Recv(from, all_ + piece.begin * width_, piece.size * width_));
      }
    }
    collects.Finish();
  }

  Call& call_;
  const Reducer& reducer_;
  const std::size_t width_;
  const sdk::Parts& parts_;
  const std::byte* const send_;
  std::byte* const mine_;
  std::byte* const all_;
  Messages gives_;
  Messages spreads_;
  std::vector<Call::Message> takes_;  // [rank][lane]
  std::vector<const void*> sources_;  // [rank]
  std::size_t largest_ = 0;           // elements of the largest part
  std::size_t segment_ = 1;           // elements
  std::size_t first_ = 0;             // segment of the group's first lane
  std::size_t slot_ = 0;              // bytes of scratch for one segment
  std::byte* scratch_ = nullptr;
};

}  // namespace

void DirectAllreduce(Call& call, const Reducer& reducer, const void* send, void* recv, std::size_t count) {
  const sdk::Parts parts = sdk::EvenParts(count, call.size());
  const std::size_t mine = parts[static_cast<std::size_t>(call.rank())].begin * reducer.width();
  Direct(call, reducer, send, parts, static_cast<std::byte*>(recv) + mine, recv).Run();
}

void DirectReduceScatter(Call& call, const Reducer& reducer, const void* send, void* recv,
                         const sdk::Parts& parts) {
  Direct(call, reducer, send, parts, recv, nullptr).Run();
}

}  // namespace dtrun::algorithms
