#include "call.h"

#include "dtrun/plugin/signature.hpp"

namespace dtrun::gloo_plugin {
namespace {

std::uint64_t Folded(std::uint64_t hash, int bits) {
  return (hash ^ hash >> 32) & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t DigestOf(std::uint64_t number, int bits) {
  sdk::Fnv1a digest;
  digest.Add(number);
  return Folded(digest.value(), bits);
}

}  // namespace

CollectiveCall::CollectiveCall(const dtrun_op& given, int ranks)
    : op(given, ranks),
      width(kernels::ElementBytes(given.dtype)),
      slot(MakeSlot(SlotUse::kCollective, (given.sequence & 0xffffffffu) << 28 |
                                              Folded(sdk::SignatureOf(given, ranks).Digest(), 24) << 4)) {}

std::uint64_t CollectiveCall::SlotOf(std::size_t bytes) const { return slot ^ DigestOf(bytes, 24) << 4; }

// 32 bits of tag and 28 of digest. Messages of one slot match in the order they were sent; a sender does not
// know whether the receiver names it, so the slot cannot count them.
std::uint64_t MessageSlot(const dtrun_op& op) {
  const std::uint64_t what = op.count << 8 | static_cast<std::uint64_t>(op.dtype);
  return MakeSlot(SlotUse::kPointToPoint, std::uint64_t{op.tag} << 28 | DigestOf(what, 28));
}

}  // namespace dtrun::gloo_plugin
