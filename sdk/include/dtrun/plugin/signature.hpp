// dtrun/plugin/signature.hpp - what all ranks must agree on in a collective, in 24 bytes.
//
// Not part of plugin.hpp. Core compares the signatures of all ranks where it can see them; a backend that
// matches messages by tag puts a digest of the signature into the tag, so that ranks which disagree never
// match. Stored in shared memory and in the flight recorder. Values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "dtrun/plugin/hash.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  using SignatureWords = std::array<std::uint64_t, 3>;

  struct Signature {
    std::uint8_t kind = 0;
    std::uint8_t dtype = 0;
    std::uint8_t reduce = 0;
    std::uint8_t device_kind = 0;  // kind of memory; 0: the host's
    std::int32_t root = -1;
    std::uint64_t count = 0;  // 0 where ranks may differ
    std::uint64_t shape = 0;  // digest of the counts per rank that all must agree on; 0: none

    friend bool operator==(const Signature& a, const Signature& b) {
      return a.kind == b.kind && a.dtype == b.dtype && a.reduce == b.reduce &&
             a.device_kind == b.device_kind && a.root == b.root && a.count == b.count && a.shape == b.shape;
    }
    friend bool operator!=(const Signature& a, const Signature& b) { return !(a == b); }

    // As it is stored. A word loaded from memory that was written in parts waits until all stores before it
    // are done, so the first is put together in registers; the assembly keeps compilers from loading its
    // parts at once.
    SignatureWords Words() const {
      std::uint32_t second = dtype, last = device_kind;
      asm("" : "+r"(second), "+r"(last));
      const std::uint32_t what = kind | second << 8 | static_cast<std::uint32_t>(reduce) << 16 | last << 24;
      return {what | static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32, count, shape};
    }
    static Signature OfWords(const SignatureWords& words) {
      Signature signature;
      signature.kind = static_cast<std::uint8_t>(words[0]);
      signature.dtype = static_cast<std::uint8_t>(words[0] >> 8);
      signature.reduce = static_cast<std::uint8_t>(words[0] >> 16);
      signature.device_kind = static_cast<std::uint8_t>(words[0] >> 24);
      signature.root = static_cast<std::int32_t>(words[0] >> 32);
      signature.count = words[1];
      signature.shape = words[2];
      return signature;
    }

    std::uint64_t Digest() const {
      Fnv1a digest;
      digest.Add(std::uint64_t{device_kind} << 56 | std::uint64_t{kind} << 48 | std::uint64_t{dtype} << 40 |
                 std::uint64_t{reduce} << 32 | static_cast<std::uint32_t>(root));
      digest.Add(count);
      digest.Add(shape);
      return digest.value();
    }
  };

  // Of `op`, a collective of `ranks`.
  inline Signature SignatureOf(const dtrun_op& op, int ranks) {
    Signature signature;
    signature.kind = static_cast<std::uint8_t>(op.kind);
    if (op.kind == DTRUN_BARRIER) return signature;
    const Form& form = FormOf(op.kind);
    signature.dtype = static_cast<std::uint8_t>(op.dtype);
    if (form.reduces) signature.reduce = static_cast<std::uint8_t>(op.reduce);
    if (form.rooted) signature.root = op.root;
    switch (op.kind) {
      case DTRUN_ALLGATHERV:
      case DTRUN_REDUCE_SCATTERV: {
        Fnv1a digest;
        for (int rank = 0; rank < ranks; ++rank) digest.Add(op.recv_counts[rank]);
        signature.shape = digest.value() | 1;
        break;
      }
      case DTRUN_ALLTOALLV:
      case DTRUN_GATHERV:
      case DTRUN_SCATTERV: break;
      default: signature.count = op.count;
    }
    return signature;
  }

  // "cuda memory"; empty: the host's. `device`: what its kind of device is called, where dtrun has no name.
  inline std::string MemoryText(const Signature& signature, const std::string& device = {}) {
    if (signature.device_kind == DTRUN_DEVICE_HOST) return {};
    const bool named = signature.device_kind >= DTRUN_DEVICE_OTHER && !device.empty();
    return (named ? device : DeviceKindText(signature.device_kind)) + " memory";
  }

  // "allreduce (float32 x 1024, sum)". `device`: what its kind of device is called.
  inline std::string SignatureText(const Signature& signature, const std::string& device = {}) {
    std::string text = OperationName(signature.kind);
    const std::string memory = MemoryText(signature, device);
    if (signature.kind == DTRUN_BARRIER) return memory.empty() ? text : text + " (" + memory + ")";
    text += std::string(" (") + TypeName(signature.dtype);
    if (signature.shape == 0 && signature.kind < DTRUN_ALLGATHERV) {
      text += " x " + std::to_string(signature.count);
    }
    if (signature.reduce != 0) text += std::string(", ") + ReductionName(signature.reduce);
    if (signature.root >= 0) text += ", root " + std::to_string(signature.root);
    if (!memory.empty()) text += ", " + memory;
    if (signature.shape == 0) return text + ")";
    char digest[9];
    std::snprintf(digest, sizeof digest, "%08x", static_cast<unsigned>(signature.shape));
    return text + ", counts per rank with digest " + digest + ")";
  }

}  // namespace v1
}  // namespace dtrun::sdk
