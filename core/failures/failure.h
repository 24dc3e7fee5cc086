// A known failure, recognised by text that a library prints.
//
// Values, read from failures.toml and from users' files. table.h explains each member. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrun::failures {

// How much a text explains.
enum class Depth : std::uint8_t {
  kCause,    // the actual error
  kSymptom,  // a consequence; prefer a cause in the same log
  kReport,   // a launcher or the runtime reports that a process failed; prefer any other text
};

// What kind of failure it is, where the exit status does not tell.
enum class Kind : std::uint8_t {
  kUnsaid,
  kNetwork,
  kRendezvous,
  kMemory,
  kConnection,  // a connection to a peer or to anything else, such as a web service
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

// A fallback from a faster path between the GPUs of a host.
struct FallbackLevel {
  std::string path;
  std::vector<std::pair<std::string, std::string>> variables;
  std::string said;  // "without peer access between GPUs"
};

}  // namespace dtrun::failures
