// What clients of torch's TCPStore send, whichever version of torch they are from.
//
// Up to torch 2.0 a request is an op, a byte, and its fields. Since 2.1 a connection begins with the op
// VALIDATE and a number, and the ops are counted from there; its servers on libuv and without speak the same.
// Sizes are of 8 bytes in the byte order of the machine. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::store {

// As torch/csrc/distributed/c10d/TCPStoreBackend.hpp of torch 2.13 counts them, and kWatchKey of older ones.
enum class TorchOp : std::uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLen,
  kListKeys,
  kBarrier,
  kWatchKey,
};

// The limits of torch's own server on libuv, and one for a whole request.
inline constexpr std::size_t kMaxTorchKeyBytes = 8 << 10;
inline constexpr std::size_t kMaxTorchValueBytes = 8 << 20;
inline constexpr std::size_t kMaxTorchKeys = 128 << 10;
inline constexpr std::size_t kMaxTorchRequestBytes = 64 << 20;

struct TorchRequest {
  TorchOp op = TorchOp::kPing;
  std::vector<std::string> fields;  // keys and values, in the order of the wire
  std::int64_t number = 0;          // of kAdd, kBarrier and kPing
};

// The requests of one connection, as its bytes come.
class TorchReader {
 public:
  void Append(std::string_view bytes);
  // Nothing: it takes more bytes. After an error the connection is of no more use.
  Result<std::optional<TorchRequest>> Next();
  // That it keeps until the next request is whole.
  std::size_t buffered() const { return left() + kept_; }

 private:
  enum class Protocol { kUnknown, kPlain, kValidated };

  bool ReadHello();
  Status Begin(std::uint8_t op);
  // Whether `size` bytes were there, copied to `to`.
  bool Read(void* to, std::size_t size);
  std::size_t left() const { return bytes_.size() - at_; }

  Protocol protocol_ = Protocol::kUnknown;
  std::string bytes_;
  std::size_t at_ = 0;                   // of the first byte that is not read yet
  std::size_t announced_ = 0;            // bytes of the request's fields, those under way included
  std::size_t kept_ = 0;                 // of those that are whole
  std::optional<TorchRequest> request_;  // under way
  bool counted_ = false;                 // how many fields there are stands before them
  bool pairs_ = false;                   // each key has a value behind it
  std::size_t fields_left_ = 0;
  std::size_t number_bytes_ = 0;             // behind the fields
  std::optional<std::uint64_t> field_size_;  // of the field under way
};

}  // namespace dtrun::store
