// The lines of PMI-1, as MPICH's simple_pmi.c speaks them: "cmd=put kvsname=a key=b value=c".
//
// Pure; any thread. What a rank sends is judged here, so that the server sees requests only.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::pmi {

// What a client is told it may use (get_maxes).
inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxKeyBytes = 64;
inline constexpr std::size_t kMaxValueBytes = 1024;

struct Pmi1Request {
  // "put"; "spawn" for the one request of several lines, of which totspawns and spawnssofar are kept.
  std::string command;
  std::map<std::string, std::string> fields;

  // Empty when there is none.
  std::string_view Field(const std::string& name) const;
};

// Cuts a stream into requests.
class Pmi1Reader {
 public:
  void Append(std::string_view bytes) { buffer_ += bytes; }
  // nullopt when more bytes are needed; an error, and from then on only errors, when what came
  // is no request.
  Result<std::optional<Pmi1Request>> Next();

 private:
  Result<std::optional<Pmi1Request>> Fail(std::string_view line, const char* why);

  std::string buffer_;
  std::optional<Error> failure_;
  std::optional<Pmi1Request> spawn_;  // under way
};

// Keys and values that hosts exchange in a barrier: lines "key value".
std::string EncodePairs(const std::map<std::string, std::string>& pairs);
// Several such texts, one after the other. Fails on anything else.
Result<std::map<std::string, std::string>> DecodePairs(std::string_view text);

}  // namespace dtrun::pmi
