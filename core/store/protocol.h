// The wire format between a rank and the store of its agent.
//
// A frame (core/wire/coder.h) holds u8 op, u32 request id, and the fields of the op in the order of its
// struct. Every request gets one reply with its id; replies may come out of order. The first request is
// Hello. Pure functions and values without I/O; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/store/metric.h"
#include "core/wire/coder.h"
#include "dtrun/abi/host.h"

namespace dtrun::store {

inline constexpr std::uint32_t kProtocolVersion = 3;

// For the prefix of a space, which core puts before the caller's key.
inline constexpr std::size_t kMaxPrefixBytes = 256;
inline constexpr std::size_t kMaxKeyBytes = DTRUN_KV_MAX_KEY_BYTES + kMaxPrefixBytes;
inline constexpr std::size_t kMaxValueBytes = DTRUN_KV_MAX_VALUE_BYTES;
// Limit of unread replies: a client that keeps sending requests beyond it is dropped.
inline constexpr std::size_t kMaxQueuedBytes = 4 * kMaxValueBytes;
inline constexpr std::size_t kMaxWaitKeys = 65536;
inline constexpr std::size_t kMaxReportBytes = 4096;
inline constexpr std::size_t kMaxReportMembers = 65536;
inline constexpr std::size_t kMaxFrameBytes = 2 * kMaxValueBytes + 8192;  // a compare_set of two values
inline constexpr std::size_t kMaxHelloBytes = 256;                        // limit before authentication

inline constexpr wire::Most kKey{kMaxKeyBytes}, kValue{kMaxValueBytes};

struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::string job_key;
  std::uint64_t generation = 0;
  std::int32_t rank = -1;
  bool main = false;  // the connection that represents the rank
  void Fields(auto& io) {
    io("version", version);
    io("job_key", job_key, wire::Most{kMaxHelloBytes});
    io("generation", generation);
    io("rank", rank);
    io("main", main);
  }
};
struct Set {
  std::string key, value;
  void Fields(auto& io) {
    io("key", key, kKey);
    io("value", value, kValue);
  }
};
struct Get {
  std::string key;
  std::int64_t timeout_ns = -1;
  void Fields(auto& io) {
    io("key", key, kKey);
    io("timeout_ns", timeout_ns);
  }
};
struct TryGet {
  std::string key;
  void Fields(auto& io) { io("key", key, kKey); }
};
struct Add {
  std::string key;
  std::int64_t amount = 0;
  void Fields(auto& io) {
    io("key", key, kKey);
    io("amount", amount);
  }
};
struct CompareSet {
  std::string key;
  bool has_expected = false;
  std::string expected, desired;
  void Fields(auto& io) {
    io("key", key, kKey);
    io("has_expected", has_expected);
    io("expected", expected, kValue);
    io("desired", desired, kValue);
  }
};
struct Erase {
  std::string key;
  void Fields(auto& io) { io("key", key, kKey); }
};
struct WaitMany {
  std::vector<std::string> keys;
  std::int64_t timeout_ns = -1;
  void Fields(auto& io) {
    io("keys", keys, wire::Most{kMaxWaitKeys}, kKey);
    io("timeout_ns", timeout_ns);
  }
};
struct Goodbye {
  void Fields(auto&) {}
};
struct Report {
  Error failure;                      // its ranks are those of the world
  std::vector<std::int32_t> members;  // of the communicator, as ranks of the world; empty: all, or too many
  void Fields(auto& io) {
    io("failure", failure);
    if (failure.text.size() > kMaxReportBytes) io.Fail("has too long a text");
    io("members", members, wire::Most{kMaxReportMembers});
  }
};
// Ends every get, try_get and wait_many, pending or later, for a missing key that begins with `prefix`: with
// DTRUN_REMOTE_FAILURE and the text. The first text for a prefix is kept.
struct Fail {
  std::string prefix, text;
  void Fields(auto& io) {
    io("prefix", prefix, wire::Most{kMaxPrefixBytes});
    io("text", text, wire::Most{kMaxReportBytes});
  }
};

// The wire value of an op is its index here plus one. Append only.
using Body =
    std::variant<Hello, Set, Get, TryGet, Add, CompareSet, Erase, WaitMany, Goodbye, Report, Fail, Metrics>;

struct Request {
  std::uint32_t id = 0;
  Body body;
};

struct Reply {
  std::uint32_t id = 0;
  dtrun_status status = DTRUN_OK;
  std::int64_t number = 0;  // sum for add; 0 or 1 for compare_set and erase
  std::string value = {};   // for get and try_get; the error's text if status is not DTRUN_OK
  void Fields(auto& io) {
    io("id", id);
    io("status", status);
    io("number", number);
    io("value", value, kValue);
  }
};

// Encodes whole frames, including the size.
std::string Encode(const Request& request);
std::string Encode(const Reply& reply);

// Decodes the bytes after the size. Returns DTRUN_INVALID_ARGUMENT unless they are exactly one well-formed
// message within the limits above.
Result<Request> DecodeRequest(std::string_view payload);
Result<Reply> DecodeReply(std::string_view payload);

}  // namespace dtrun::store
