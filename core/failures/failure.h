// A failure that is known by the text which a library prints.
//
// Values, read from failures.toml and from the files of users (table.h), where each member is explained. Any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrun::failures {

// How much of the story a text tells.
enum class Depth : std::uint8_t {
  kCause,    // what went wrong
  kSymptom,  // only that something did; a cause in the same log is the better answer
  kReport,   // a launcher or the runtime reports that a process failed; any other text is the better answer
};

// What the failure is, when the way in which a process ends does not say it.
enum class Kind : std::uint8_t {
  kUnsaid,
  kNetwork,
  kRendezvous,
  kMemory,
  kConnection,  // of a connection to a peer or to anything else, such as a web service
  kCalls,       // ranks made different calls
};

struct KnownFailure {
  std::string id;
  std::vector<std::string> texts;  // patterns (pattern.h)
  std::string what;
  std::string fix;
  std::string source;
  Depth depth = Depth::kCause;
  Kind kind = Kind::kUnsaid;
  std::vector<std::string> against;  // paths of fallback levels: "peer-access"
};

// How a path between the GPUs of a host is given up.
struct FallbackLevel {
  std::string path;
  std::vector<std::pair<std::string, std::string>> variables;
  std::string said;  // "without peer access between GPUs"
};

}  // namespace dtrun::failures
