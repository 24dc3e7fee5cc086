// Parses requests of torch's TCPStore clients, for all versions of torch.
//
// Up to torch 2.0 a request is a one-byte op and its fields. Since 2.1 a connection begins with the op
// VALIDATE and a number, and the ops count from there. Servers with and without libuv use the same protocol.
// Sizes have 8 bytes in the machine's byte order. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::store {

// Numbered as in torch/csrc/distributed/c10d/TCPStoreBackend.hpp of torch 2.13, with kWatchKey of older
// versions.
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

// The limits of torch's own libuv server, and one for a whole request.
inline constexpr std::size_t kMaxTorchKeyBytes = 8 << 10;
inline constexpr std::size_t kMaxTorchValueBytes = 8 << 20;
inline constexpr std::size_t kMaxTorchKeys = 128 << 10;
inline constexpr std::size_t kMaxTorchRequestBytes = 64 << 20;

struct TorchRequest {
  TorchOp op = TorchOp::kPing;
  std::vector<std::string> fields;  // keys and values, in wire order
  std::int64_t number = 0;          // for kAdd, kBarrier and kPing
};

// Parses the requests of one connection from its bytes.
class TorchReader {
 public:
  void Append(std::string_view bytes);
  // Nullopt: more bytes are needed. After an error the connection is unusable.
  Result<std::optional<TorchRequest>> Next();
  // Bytes kept until the next request is complete.
  std::size_t buffered() const { return left() + kept_; }

 private:
  enum class Protocol { kUnknown, kPlain, kValidated };

  bool ReadHello();
  Status Begin(std::uint8_t op);
  // Copies `size` bytes to `to`; false if they are not there yet.
  bool Read(void* to, std::size_t size);
  std::size_t left() const { return bytes_.size() - at_; }

  Protocol protocol_ = Protocol::kUnknown;
  std::string bytes_;
  std::size_t at_ = 0;                   // the first unread byte
  std::size_t announced_ = 0;            // bytes of the request's fields, including those still to come
  std::size_t kept_ = 0;                 // bytes of the complete fields
  std::optional<TorchRequest> request_;  // in progress
  bool counted_ = false;                 // a field count precedes the fields
  bool pairs_ = false;                   // each key is followed by a value
  std::size_t fields_left_ = 0;
  std::size_t number_bytes_ = 0;             // of the number after the fields
  std::optional<std::uint64_t> field_size_;  // of the current field
};

}  // namespace dtrun::store
