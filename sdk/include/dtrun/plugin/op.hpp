// dtrun/plugin/op.hpp - what each operation reads and writes: the words of dtrun/abi/types.h as code.
//
// Not part of plugin.hpp. Core checks every dtrun_op against this before a backend sees it, so a
// backend relies on what types.h and op.h say: kind, type and reduction are among its Caps and have
// a meaning together, root and peer are ranks, buffers and arrays that this rank uses are there and
// aligned, parts fit into memory. Pure functions and values; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/abi/op.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // How many elements a buffer has.
  enum class Shape : std::uint8_t {
    kNone,
    kCount,      // count
    kCountEach,  // count for every rank
    kMine,       // recv_counts[rank]
    kSendParts,  // send_counts, at send_offsets
    kRecvParts   // recv_counts, at recv_offsets
  };

  // The one overlap of the two buffers that is allowed.
  enum class InPlace : std::uint8_t { kNever, kSame, kSendInRecv, kRecvInSend };

  // Where a buffer is used.
  enum class On : std::uint8_t { kEveryRank, kRoot };

  struct Form {
    Shape send = Shape::kNone;
    Shape recv = Shape::kNone;
    InPlace in_place = InPlace::kNever;
    bool reduces = false;
    bool rooted = false;
    On send_on = On::kEveryRank;
    On recv_on = On::kEveryRank;
  };

  // By kind; entry 0 is for every unknown one.
  inline constexpr Form kForms[kOperationEnd] = {
      {},
      /* allreduce */ {Shape::kCount, Shape::kCount, InPlace::kSame, true},
      /* broadcast */ {Shape::kNone, Shape::kCount, InPlace::kNever, false, true},
      /* allgather */ {Shape::kCount, Shape::kCountEach, InPlace::kSendInRecv},
      /* reduce_scatter */ {Shape::kCountEach, Shape::kCount, InPlace::kRecvInSend, true},
      /* barrier */ {},
      /* send */ {Shape::kCount},
      /* recv */ {Shape::kNone, Shape::kCount},
      /* reduce */ {Shape::kCount, Shape::kCount, InPlace::kSame, true, true, On::kEveryRank, On::kRoot},
      /* alltoall */ {Shape::kCountEach, Shape::kCountEach, InPlace::kSame},
      /* gather */
      {Shape::kCount, Shape::kCountEach, InPlace::kSendInRecv, false, true, On::kEveryRank, On::kRoot},
      /* scatter */ {Shape::kCountEach, Shape::kCount, InPlace::kRecvInSend, false, true, On::kRoot},
      /* allgatherv */ {Shape::kMine, Shape::kRecvParts, InPlace::kSendInRecv},
      /* reduce_scatterv */ {Shape::kRecvParts, Shape::kMine, InPlace::kRecvInSend, true},
      /* alltoallv */ {Shape::kSendParts, Shape::kRecvParts, InPlace::kSame},
      /* gatherv */
      {Shape::kCount, Shape::kRecvParts, InPlace::kSendInRecv, false, true, On::kEveryRank, On::kRoot},
      /* scatterv */ {Shape::kSendParts, Shape::kCount, InPlace::kRecvInSend, false, true, On::kRoot}};

  constexpr bool IsKnown(std::int32_t kind) { return kind > 0 && kind < kOperationEnd; }
  constexpr const Form& FormOf(std::int32_t kind) { return kForms[IsKnown(kind) ? kind : 0]; }
  // Combines elements of different ranks.
  constexpr bool IsReduction(std::int32_t kind) { return FormOf(kind).reduces; }
  // Has a root.
  constexpr bool IsRooted(std::int32_t kind) { return FormOf(kind).rooted; }
  constexpr bool IsCollective(std::int32_t kind) { return kind != DTRUN_SEND && kind != DTRUN_RECV; }

  // ---- parts of a buffer ----------------------------------------------------------------

  // [begin, end()) of a buffer, in elements or in bytes.
  struct Part {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t end() const { return begin + size; }
    friend bool operator==(const Part& a, const Part& b) { return a.begin == b.begin && a.size == b.size; }
  };
  using Parts = std::vector<Part>;  // by rank

  // Address of element `index` of elements of `width` bytes.
  inline char* At(void* memory, std::uint64_t index, std::uint64_t width) {
    return static_cast<char*>(memory) + index * width;
  }
  inline const char* At(const void* memory, std::uint64_t index, std::uint64_t width) {
    return static_cast<const char*>(memory) + index * width;
  }

  // Part `index` of `count` elements, cut as evenly as possible into `parts`.
  inline Part EvenPart(std::uint64_t count, int parts, int index) {
    const auto n = static_cast<std::uint64_t>(parts), i = static_cast<std::uint64_t>(index);
    const std::uint64_t each = count / n, more = count % n;
    return {i * each + std::min(i, more), each + (i < more ? 1 : 0)};
  }
  inline Parts EvenParts(std::uint64_t count, int parts) {
    Parts all(static_cast<std::size_t>(parts));
    for (int index = 0; index < parts; ++index) {
      all[static_cast<std::size_t>(index)] = EvenPart(count, parts, index);
    }
    return all;
  }
  // Parts of the given sizes: at the given offsets, or contiguous when those are null.
  inline Parts GivenParts(const std::uint64_t* counts, const std::uint64_t* offsets, int parts) {
    Parts all(static_cast<std::size_t>(parts));
    std::uint64_t next = 0;
    for (std::size_t index = 0; index < all.size(); ++index) {
      all[index] = {offsets != nullptr ? offsets[index] : next, counts[index]};
      next += counts[index];
    }
    return all;
  }
  // `parts` parts of `count` elements each.
  inline Parts EqualParts(std::uint64_t count, int parts) {
    Parts all(static_cast<std::size_t>(parts));
    for (std::size_t index = 0; index < all.size(); ++index) all[index] = {index * count, count};
    return all;
  }
  // Of elements of `width` bytes.
  inline Parts InBytes(Parts parts, std::uint64_t width) {
    for (Part& part : parts) part = {part.begin * width, part.size * width};
    return parts;
  }
  // One past the last element of all parts.
  inline std::uint64_t EndOf(const Parts& parts) {
    std::uint64_t end = 0;
    for (const Part& part : parts) end = std::max(end, part.size == 0 ? 0 : part.end());
    return end;
  }
  inline std::uint64_t SizeOf(const Parts& parts) {
    std::uint64_t sum = 0;
    for (const Part& part : parts) sum += part.size;
    return sum;
  }

  inline std::uint64_t LongestOf(const Parts& parts) {
    std::uint64_t longest = 0;
    for (const Part& part : parts) longest = std::max(longest, part.size);
    return longest;
  }

  namespace internal {
  inline Parts PartsOf(const dtrun_op& op, Shape shape, On on, int rank, int ranks) {
    if (shape == Shape::kNone || (on == On::kRoot && rank != op.root)) return EqualParts(0, ranks);
    switch (shape) {
      case Shape::kCountEach: return EqualParts(op.count, ranks);
      case Shape::kSendParts: return GivenParts(op.send_counts, op.send_offsets, ranks);
      case Shape::kRecvParts: return GivenParts(op.recv_counts, op.recv_offsets, ranks);
      default: break;
    }
    const std::uint64_t count = shape == Shape::kMine ? op.recv_counts[rank] : op.count;
    // With a root, every other rank exchanges data with the root only.
    const bool with_all = !IsRooted(op.kind) || on == On::kRoot;
    Parts parts(static_cast<std::size_t>(ranks), with_all ? Part{0, count} : Part{});
    if (!with_all) parts[static_cast<std::size_t>(op.root)] = {0, count};
    return parts;
  }
  }  // namespace internal

  // What goes from `op.send` of `rank` to each of `ranks`, and what comes into `op.recv` from each,
  // in elements. Of a reduction: what is combined for, and from, each. REQUIRES a collective.
  inline Parts SendParts(const dtrun_op& op, int rank, int ranks) {
    const Form& form = FormOf(op.kind);
    return internal::PartsOf(op, form.send, form.send_on, rank, ranks);
  }
  inline Parts RecvParts(const dtrun_op& op, int rank, int ranks) {
    const Form& form = FormOf(op.kind);
    return internal::PartsOf(op, form.recv, form.recv_on, rank, ranks);
  }

  // ---- an operation that outlives its caller's arrays ------------------------------------

  class OwnedOp {
   public:
    // `op` is for a communicator of `ranks`.
    OwnedOp(const dtrun_op& op, int ranks) : op_(op) {
      const std::uint64_t** const members[] = {&op_.send_counts, &op_.send_offsets, &op_.recv_counts,
                                               &op_.recv_offsets};
      for (const std::uint64_t** member : members) {
        if (*member != nullptr) arrays_.insert(arrays_.end(), *member, *member + ranks);
      }
      const std::uint64_t* next = arrays_.data();
      for (const std::uint64_t** member : members) {
        if (*member != nullptr) *member = std::exchange(next, next + ranks);
      }
    }
    OwnedOp(const OwnedOp&) = delete;
    OwnedOp& operator=(const OwnedOp&) = delete;
    OwnedOp(OwnedOp&&) = default;

    const dtrun_op& operator*() const { return op_; }
    const dtrun_op* operator->() const { return &op_; }

   private:
    dtrun_op op_;
    std::vector<std::uint64_t> arrays_;
  };

  // "allreduce 7", "recv from rank 1 with tag 3".
  inline std::string OperationText(const dtrun_op& op) {
    std::string text = OperationName(op.kind);
    if (IsCollective(op.kind)) return text + " " + std::to_string(op.sequence);
    text += op.kind == DTRUN_SEND ? " to " : " from ";
    text += op.peer == DTRUN_ANY_SOURCE ? std::string("any rank") : "rank " + std::to_string(op.peer);
    return text + " with tag " + std::to_string(op.tag);
  }

}  // namespace v1
}  // namespace dtrun::sdk
