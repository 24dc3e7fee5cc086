// The first messages of root and agent: who they are, and whether they belong together.
//
// Inside TLS the agent sends one Hello; the root answers with one Welcome or Refusal. The format of a Refusal
// and of the first three fields of a Hello never changes, so that any two versions can explain their
// mismatch. Values and pure functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/base/result.h"
#include "core/protocol/tls.h"
#include "core/wire/limits.h"

namespace dtrun::protocol {

// The kind of a frame of the control link: the first byte of its payload.
enum class Kind : std::uint8_t {
  kHello = 1,    // agent to root, first
  kWelcome = 2,  // the root's answer ...
  kRefusal = 3,  // ... or this, then the end
  kMessage = 4,  // then in both directions: a message passed to Channel::Send
  kAlive = 5,    // heartbeat
  kGoodbye = 6,  // nothing will follow
};

// REQUIRES: not empty, which FrameReader ensures.
inline Kind KindOf(std::string_view payload) { return static_cast<Kind>(payload.front()); }

inline constexpr std::uint32_t kMagic = 0x6e725444;  // "DTrn"
inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kMaxHelloBytes = 8192;  // of a frame from an unauthenticated peer
inline constexpr std::size_t kMaxNameBytes = 1024;   // of each text in it
inline constexpr std::size_t kMaxRefusalBytes = 4096;
inline constexpr Nanoseconds kMinLossLimit = std::chrono::milliseconds(10);
inline constexpr Nanoseconds kMaxLossLimit = std::chrono::hours(24);

inline constexpr wire::Between<std::int64_t> kLossLimits{kMinLossLimit.count(), kMaxLossLimit.count()};

struct Hello {
  std::uint32_t protocol = kProtocol;
  std::string version = DTRUN_VERSION;  // of dtrun
  std::string job;
  std::int32_t host_index = -1;  // which host of the plan it claims to be; -1: the root decides
  std::string host_name;         // the host's own name
  // When the sender gives up a silent peer; from kMinLossLimit to kMaxLossLimit.
  Nanoseconds loss_limit = std::chrono::seconds(10);
  void Fields(auto& io) {
    io("protocol", protocol);
    io("version", version, wire::Most{kMaxNameBytes}, wire::kPrintable);
    if (protocol != kProtocol) return;
    io("job", job, wire::Most{kMaxNameBytes});
    io("host_index", host_index);
    io("host_name", host_name, wire::Most{kMaxNameBytes}, wire::kPrintable);
    io("loss_limit", loss_limit, kLossLimits);
  }
};

struct Welcome {
  std::string host_name;
  Nanoseconds loss_limit = std::chrono::seconds(10);
  void Fields(auto& io) {
    io("host_name", host_name, wire::Most{kMaxNameBytes}, wire::kPrintable);
    io("loss_limit", loss_limit, kLossLimits);
  }
};

struct Refusal {
  bool final = true;  // false: the same Hello may succeed later
  std::string text;
  void Fields(auto& io) {
    io("final", final);
    io("text", text, wire::Most{kMaxRefusalBytes});
  }
};

// Whole frames including the size.
std::string Encode(const Hello& hello);
std::string Encode(const Welcome& welcome);
std::string Encode(const Refusal& refusal);

// These decode the bytes after the size. For another protocol, a Hello has only its protocol and version set.
// Anything but one well-formed hello is DTRUN_INVALID_ARGUMENT.
Result<Hello> DecodeHello(std::string_view payload);

// The root's answer: the Welcome, or a Refusal as an Error with the root's text. DTRUN_BUSY if a later try
// may succeed, otherwise DTRUN_FAILED_PRECONDITION.
Result<Welcome> DecodeAnswer(std::string_view payload);

// Compares protocol, version and job of `hello` with our own. The agent's user reads the error; it calls the
// two "this root" and "this host".
Status Compare(const Hello& hello, std::string_view job);

// The data that a new agent needs to find its root: one line on its stdin.
struct JoinRequest {
  std::string job = {};
  std::vector<std::string> names = {};
  int port = 0;
  protocol::Key key;
  int host = -1;  // its number; -1: see `nodes`, otherwise the root assigns it
  // Number and name of each host, if one line serves several hosts; each then finds its own entry.
  std::vector<std::pair<int, std::string>> nodes = {};
  Nanoseconds join_timeout{};
  Nanoseconds lost_after{};
  std::string port_range = {};     // cluster.port_range
  std::string node_variable = {};  // variable with each host's name in `nodes`; empty: the host knows it
  std::string log_levels = {};     // the root's log levels (core/log/log.h); empty: the agent's own
  bool log_json = false;
  std::string key_origin = {};  // where this host got the key, for errors; not part of the line
  void Fields(auto& io) {       // but the key
    io("job", job);
    io("names", names, wire::kMostEntries);
    io("port", port, wire::kAnyPort);
    io("host", host);
    io("nodes", nodes, wire::kMostHosts);
    io("node_variable", node_variable);
    io("join_timeout_ns", join_timeout);
    io("lost_after_ns", lost_after);
    io("port_range", port_range);
    io("log_levels", log_levels, wire::kMayMiss);
    io("log_json", log_json, wire::kMayMiss);
  }
};

// The line that a remote shell passes to `dtrun agent`. The key is in hex.
std::string ToLine(const JoinRequest& request, const std::string& key_digits);
Result<JoinRequest> ParseJoinRequest(const std::string& line);
// The number of this host among the request's nodes. `node`: the value of node_variable, null if unset.
// `is_own`: whether a name is this host's.
Result<int> NumberAmong(const JoinRequest& request, const char* node,
                        const std::function<bool(const std::string& name)>& is_own);

}  // namespace dtrun::protocol
