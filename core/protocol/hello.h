// What root and agent say first: who they are, and whether they belong together.
//
// Inside TLS the agent sends one Hello; the root answers with one Welcome or Refusal. The
// first three fields of a Hello, and a Refusal, never change, so that every version can
// explain its disagreement with every other. Values and pure functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/units.h"

namespace dtrun::protocol {

inline constexpr std::uint32_t kMagic = 0x6e725444;  // "DTrn"
inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kMaxHelloBytes = 8192;  // of a frame, before the peer is known
inline constexpr std::size_t kMaxNameBytes = 1024;   // of each text in it
inline constexpr std::size_t kMaxRefusalBytes = 4096;
inline constexpr Nanoseconds kMinLossLimit = std::chrono::milliseconds(10);
inline constexpr Nanoseconds kMaxLossLimit = std::chrono::hours(24);

struct Hello {
  std::uint32_t protocol = kProtocol;
  std::string version = DTRUN_VERSION;  // of dtrun
  std::string job;
  std::int32_t host_index = -1;  // which host of the plan it claims to be; -1: the root decides
  std::string host_name;         // as the host calls itself
  // When the sender gives a silent peer up; from kMinLossLimit to kMaxLossLimit.
  Nanoseconds loss_limit = std::chrono::seconds(10);
};

struct Welcome {
  std::string host_name;
  Nanoseconds loss_limit = std::chrono::seconds(10);
};

struct Refusal {
  bool final = true;  // false: the same Hello may be welcome later
  std::string text;
};

// Whole frames, size included.
std::string Encode(const Hello& hello);
std::string Encode(const Welcome& welcome);
std::string Encode(const Refusal& refusal);

// These decode the bytes behind the size. A Hello of another protocol has its protocol and version only.
// Anything else than one well-formed hello is DTRUN_INVALID_ARGUMENT.
Result<Hello> DecodeHello(std::string_view payload);

// The root's answer: the Welcome, or a Refusal as an Error with the root's text, DTRUN_BUSY
// when it may change and DTRUN_FAILED_PRECONDITION when it will not.
Result<Welcome> DecodeAnswer(std::string_view payload);

// Protocol, version and job of `hello` against our own; the error is what the agent's user
// reads, in terms of "this root" and "this host".
Status Compare(const Hello& hello, std::string_view job);

}  // namespace dtrun::protocol
