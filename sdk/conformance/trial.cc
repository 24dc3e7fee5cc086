#include "trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "dtrun/plugin/names.hpp"

namespace dtrun::conformance {
namespace {

constexpr unsigned char kUntouched = 0xa5;
constexpr std::uint64_t kGap = 3;  // elements

bool HasGaps(Shape shape) { return shape == Shape::kGaps || shape == Shape::kSpread; }

// Where the parts of a buffer lie, in elements.
struct CaseParts {
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> offsets;
  std::uint64_t extent = 0;

  static CaseParts Of(std::vector<std::uint64_t> counts, Shape shape) {
    const std::uint64_t gap = HasGaps(shape) ? kGap : 0;
    CaseParts parts{std::move(counts), {}, gap};
    parts.offsets.resize(parts.counts.size());
    for (std::size_t i = 0; i < parts.counts.size(); ++i) {
      const std::size_t p = shape == Shape::kGaps ? parts.counts.size() - 1 - i : i;
      parts.offsets[p] = parts.extent;
      parts.extent += parts.counts[p] + gap;
    }
    return parts;
  }
};

// A buffer for elements of `width` bytes that begins one element late, or not: no transport may count on more
// alignment than an element's.
class Place {
 public:
  void Assign(std::size_t size, std::size_t late) {
    bytes_.assign(late + size, kUntouched);
    late_ = late;
  }
  unsigned char* data() { return bytes_.data() + late_; }
  const unsigned char* data() const { return bytes_.data() + late_; }
  std::size_t size() const { return bytes_.size() - late_; }
  bool empty() const { return size() == 0; }
  void Clear() { Assign(0, 0); }
  bool operator==(const Place&) const = default;

 private:
  Buffer bytes_;
  std::size_t late_ = 0;
};

// What a part holds: element i of part p.
using Content = std::function<Number(std::size_t part, std::uint64_t index)>;

class Call {
 public:
  Call(Rank& rank, const Trial& trial)
      : rank_(rank), trial_(trial), me_(static_cast<std::size_t>(rank.rank())), op_(MakeOp(trial.kind)) {
    op_.dtype = trial.type.dtype;
    op_.reduce = Reduces(trial.kind) ? trial.reduce : 0;
    op_.flags = trial.flags;
    op_.count = trial.count;
    if (Rooted(trial.kind)) op_.root = trial.root;
    if (trial.reduce == DTRUN_PREMUL_SUM) op_.scale = ScaleOf(rank.rank());
    Lay();
  }

  void Run() {
    const Outcome outcome = rank_.Do(op_);
    ASSERT_TRUE(outcome.ok()) << Name() << ": " << outcome;
    if (reads_) Expect(recv(), recv_parts_, result_);
    ExpectUntouched();
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(rank_.size()); }
  bool at_root() const { return rank_.rank() == trial_.root; }
  std::uint64_t CountOf(std::size_t part) const {
    if (trial_.shape == Shape::kEven) return trial_.count;
    return part % 3 == 1 ? 0 : trial_.count + part;
  }
  // Elements from rank `from` to rank `to`; alike both ways, so that it works in place.
  std::uint64_t CountBetween(std::size_t from, std::size_t to) const {
    if (trial_.shape == Shape::kEven) return trial_.count;
    return (from + to) % 3 == 1 ? 0 : trial_.count + from + to;
  }
  CaseParts Whole() const { return CaseParts::Of({trial_.count}, Shape::kEven); }
  CaseParts Each() const {
    std::vector<std::uint64_t> counts;
    for (std::size_t p = 0; p < ranks(); ++p)
      counts.push_back(HasParts(trial_.kind) ? CountOf(p) : trial_.count);
    return CaseParts::Of(std::move(counts), HasParts(trial_.kind) ? trial_.shape : Shape::kEven);
  }
  CaseParts Own() const { return CaseParts::Of({CountOf(me_)}, Shape::kEven); }
  CaseParts Between() const {
    std::vector<std::uint64_t> counts;
    for (std::size_t p = 0; p < ranks(); ++p) counts.push_back(CountBetween(me_, p));
    return CaseParts::Of(std::move(counts), trial_.shape);
  }

  Number ValueOf(std::size_t of, std::uint64_t index) const {
    return Value(trial_.type, trial_.reduce, static_cast<int>(of), index);
  }
  Number ReducedAt(std::uint64_t index) const {
    return Reduced(trial_.type, trial_.reduce, rank_.size(), index);
  }

  // What is sent, what is to come, and where each lies.
  void Lay() {
    const Content mine = [this](std::size_t, std::uint64_t i) { return ValueOf(me_, i); };
    const Content everyones = [this](std::size_t p, std::uint64_t i) { return ValueOf(p, i); };
    // Part p of rank r: told apart from other parts of the same rank.
    const auto pair = [this](std::size_t r, std::size_t p, std::uint64_t i) {
      return ValueOf(r, i + 2 * p + 1);
    };
    switch (trial_.kind) {
      case DTRUN_ALLREDUCE:
      case DTRUN_REDUCE:
        Send(Whole(), mine);
        if (trial_.kind == DTRUN_ALLREDUCE || at_root()) {
          Recv(Whole(), [this](std::size_t, std::uint64_t i) { return ReducedAt(i); });
          if (trial_.in_place) SendLiesInRecv(0);
        }
        break;
      case DTRUN_BROADCAST:
        Recv(Whole(), [this](std::size_t, std::uint64_t i) {
          return ValueOf(static_cast<std::size_t>(trial_.root), i);
        });
        if (at_root()) Fill(recv_buffer_, recv_parts_, result_);
        break;
      case DTRUN_ALLGATHER:
      case DTRUN_ALLGATHERV:
        Send(Own(), mine);
        Recv(Each(), everyones);
        if (trial_.in_place) SendLiesInRecv(me_);
        break;
      case DTRUN_GATHER:
      case DTRUN_GATHERV:
        Send(Own(), mine);
        op_.count = CountOf(me_);
        if (at_root()) {
          Recv(Each(), everyones);
          if (trial_.in_place) SendLiesInRecv(me_);
        }
        break;
      case DTRUN_REDUCE_SCATTER:
      case DTRUN_REDUCE_SCATTERV: {
        const CaseParts parts = Each();
        const auto begin = parts.offsets;
        Send(parts, [this, begin](std::size_t p, std::uint64_t i) { return ValueOf(me_, begin[p] + i); });
        Recv(Own(), [this, begin](std::size_t, std::uint64_t i) { return ReducedAt(begin[me_] + i); });
        if (trial_.in_place) RecvLiesInSend();
        break;
      }
      case DTRUN_SCATTER:
      case DTRUN_SCATTERV:
        if (at_root()) Send(Each(), [this, pair](std::size_t p, std::uint64_t i) { return pair(me_, p, i); });
        Recv(Own(), [this, pair](std::size_t, std::uint64_t i) {
          return pair(static_cast<std::size_t>(trial_.root), me_, i);
        });
        op_.count = CountOf(me_);
        if (trial_.in_place && at_root()) RecvLiesInSend();
        break;
      default:
        Send(Between(), [this, pair](std::size_t p, std::uint64_t i) { return pair(me_, p, i); });
        Recv(Between(), [this, pair](std::size_t p, std::uint64_t i) { return pair(p, me_, i); });
        if (trial_.in_place) {
          recv_buffer_ = send_buffer_;
          op_.send = recv_buffer_.data();
          send_kept_ = false;
        }
    }
    GiveParts();
  }

  std::size_t Late() const { return trial_.count % 2 == 0 ? 0 : trial_.type.width; }
  void Send(CaseParts parts, const Content& content) {
    send_parts_ = std::move(parts);
    send_buffer_.Assign(send_parts_.extent * trial_.type.width + 1, Late());
    Fill(send_buffer_, send_parts_, content);
    op_.send = send_buffer_.data();
    send_kept_ = true;
  }
  void Recv(CaseParts parts, Content result) {
    recv_parts_ = std::move(parts);
    recv_buffer_.Assign(recv_parts_.extent * trial_.type.width + 1, Late());
    result_ = std::move(result);
    op_.recv = recv_buffer_.data();
    reads_ = true;
  }
  unsigned char* recv() { return static_cast<unsigned char*>(op_.recv); }
  void SendLiesInRecv(std::size_t part) {
    unsigned char* const place = recv_buffer_.data() + recv_parts_.offsets[part] * trial_.type.width;
    std::copy_n(send_buffer_.data(), send_buffer_.size() - 1, place);
    op_.send = place;
    send_kept_ = false;
  }
  void RecvLiesInSend() {
    op_.recv = send_buffer_.data() + send_parts_.offsets[me_] * trial_.type.width;
    recv_buffer_.Clear();
    send_kept_ = false;  // other parts of a reduction in place are the backend's to use
  }
  void GiveParts() {
    const bool gaps = HasGaps(trial_.shape);
    switch (trial_.kind) {
      case DTRUN_ALLTOALLV:
        op_.send_counts = send_parts_.counts.data();
        if (gaps) op_.send_offsets = send_parts_.offsets.data();
        [[fallthrough]];
      case DTRUN_ALLGATHERV:
        op_.recv_counts = recv_parts_.counts.data();
        if (gaps) op_.recv_offsets = recv_parts_.offsets.data();
        break;
      case DTRUN_REDUCE_SCATTERV: op_.recv_counts = send_parts_.counts.data(); break;
      case DTRUN_GATHERV:
        if (!at_root()) break;
        op_.recv_counts = recv_parts_.counts.data();
        if (gaps) op_.recv_offsets = recv_parts_.offsets.data();
        break;
      case DTRUN_SCATTERV:
        if (!at_root()) break;
        op_.send_counts = send_parts_.counts.data();
        if (gaps) op_.send_offsets = send_parts_.offsets.data();
        break;
      default: break;
    }
    if (HasParts(trial_.kind) && trial_.kind != DTRUN_GATHERV && trial_.kind != DTRUN_SCATTERV) op_.count = 0;
    sent_ = send_buffer_;
  }

  void Fill(Place& buffer, const CaseParts& parts, const Content& content) const {
    for (std::size_t p = 0; p < parts.counts.size(); ++p) {
      unsigned char* const at = buffer.data() + parts.offsets[p] * trial_.type.width;
      for (std::uint64_t i = 0; i < parts.counts[p]; ++i) {
        Put(trial_.type, at + i * trial_.type.width, content(p, i));
      }
    }
  }

  // A result of a lossy backend is of the right order (C10): its values are small whole numbers, of equal
  // sign.
  double Tolerance() const {
    constexpr double kLossy = 1.0 / 8;
    if (!Reduces(trial_.kind)) return 0;
    const bool wide = trial_.type.precision > 0 && trial_.type.width >= 4;
    if (wide && rank_.subject().SumsAreLossy()) return kLossy;
    return Rounded(trial_.type, trial_.reduce) ? trial_.type.precision : 0;
  }

  void Expect(const unsigned char* data, const CaseParts& parts, const Content& content) const {
    const double tolerance = Tolerance();
    for (std::size_t p = 0; p < parts.counts.size(); ++p) {
      const unsigned char* const at = data + parts.offsets[p] * trial_.type.width;
      for (std::uint64_t i = 0; i < parts.counts[p]; ++i) {
        const std::string difference =
            Difference(trial_.type, at + i * trial_.type.width, content(p, i), tolerance);
        ASSERT_EQ(difference, "") << Name() << ": element " << i << " of part " << p;
      }
    }
  }

  void ExpectUntouched() const {
    if (send_kept_) {
      EXPECT_TRUE(send_buffer_ == sent_) << Name() << " changed its send buffer";
    }
    if (recv_buffer_.empty()) return;
    std::vector<bool> part(recv_buffer_.size(), false);
    for (std::size_t p = 0; p < recv_parts_.counts.size(); ++p) {
      const auto begin =
          part.begin() + static_cast<std::ptrdiff_t>(recv_parts_.offsets[p] * trial_.type.width);
      std::fill(begin, begin + static_cast<std::ptrdiff_t>(recv_parts_.counts[p] * trial_.type.width), true);
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      ASSERT_TRUE(part[i] || recv_buffer_.data()[i] == kUntouched)
          << Name() << " wrote byte " << i << ", which is no part";
    }
  }

  std::string Name() const {
    std::string name = KindName(trial_.kind) + " of " + std::to_string(trial_.count) + " " + trial_.type.name;
    for (const ReduceInfo& reduce : conformance::Reduces()) {
      if (Reduces(trial_.kind) && reduce.reduce == trial_.reduce) name += std::string(" ") + reduce.name;
    }
    if (trial_.in_place) name += " in place";
    if (trial_.shape == Shape::kUneven) name += " with uneven parts";
    if (HasGaps(trial_.shape))
      name += trial_.shape == Shape::kGaps ? " with gaps, in reverse order" : " with gaps";
    if (Rooted(trial_.kind)) name += " with root " + std::to_string(trial_.root);
    return name + " on rank " + std::to_string(rank_.rank()) + " of " + std::to_string(rank_.size());
  }
  static bool Reduces(std::int32_t kind) { return conformance::Reduces(kind); }

  Rank& rank_;
  const Trial& trial_;
  const std::size_t me_;
  dtrun_op op_;
  CaseParts send_parts_;
  CaseParts recv_parts_;
  Place send_buffer_;
  Place recv_buffer_;  // empty where the result lies in the send buffer
  Place sent_;
  Content result_;
  bool reads_ = false;
  bool send_kept_ = false;
};

}  // namespace

std::string KindName(std::int32_t kind) {
  static const char* const names[] = {"",        "Allreduce", "Broadcast",  "Allgather",      "ReduceScatter",
                                      "Barrier", "Send",      "Recv",       "Reduce",         "Alltoall",
                                      "Gather",  "Scatter",   "Allgatherv", "ReduceScatterv", "Alltoallv",
                                      "Gatherv", "Scatterv"};
  static_assert(sizeof names / sizeof names[0] == sdk::kOperationEnd);
  return names[kind];
}

bool Reduces(std::int32_t kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}

bool Rooted(std::int32_t kind) {
  return kind == DTRUN_BROADCAST || kind == DTRUN_REDUCE || kind == DTRUN_GATHER || kind == DTRUN_GATHERV ||
         kind == DTRUN_SCATTER || kind == DTRUN_SCATTERV;
}

bool HasParts(std::int32_t kind) { return kind >= DTRUN_ALLGATHERV && kind <= DTRUN_SCATTERV; }

void Attempt(Rank& rank, const Trial& trial) { Call(rank, trial).Run(); }

}  // namespace dtrun::conformance
