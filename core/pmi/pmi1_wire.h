// The PMI-1 line protocol of MPICH's simple_pmi.c: "cmd=put kvsname=a key=b value=c".
//
// Pure; any thread. Validates the input of ranks, so that the server handles only valid requests.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::pmi {

// The limits that get_maxes reports to clients.
inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxKeyBytes = 64;
inline constexpr std::size_t kMaxValueBytes = 1024;

struct Pmi1Request {
  // "put"; "spawn" for the only multi-line request, of which totspawns and spawnssofar are kept.
  std::string command;
  std::map<std::string, std::string> fields;

  // Empty if absent.
  std::string_view Field(const std::string& name) const;
};

// Splits a stream into requests.
class Pmi1Reader {
 public:
  void Append(std::string_view bytes) { buffer_ += bytes; }
  // Nullopt if more bytes are needed. An error for an invalid request, and for every call after it.
  Result<std::optional<Pmi1Request>> Next();

 private:
  Result<std::optional<Pmi1Request>> Fail(std::string_view line, const char* why);

  std::string buffer_;
  std::optional<Error> failure_;
  std::optional<Pmi1Request> spawn_;  // in progress
};

// Keys and values that hosts exchange in a barrier, as lines "key value".
std::string EncodePairs(const std::map<std::string, std::string>& pairs);
// Decodes several such texts, concatenated. Rejects anything else.
Result<std::map<std::string, std::string>> DecodePairs(std::string_view text);

}  // namespace dtrun::pmi
