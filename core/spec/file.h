// Reads a config file and reports errors that come before parsing. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/spec/document.h"

namespace dtrun::spec {

inline constexpr std::size_t kMaxFileBytes = 1 << 20;

// The bytes of `path`, which may be a pipe, without a UTF-8 byte order mark. Ends in bounded time. The error
// does not repeat the path.
Result<std::string> ReadFile(const std::filesystem::path& path);

// The hint for an unreadable `path`: a file with a similar name, or else where dtrun looked.
std::string WhereElse(const std::filesystem::path& path);

// Suggests valid TOML for a malformed line: common mistakes of YAML, JSON and Python users.
//
// Pure; any thread.
struct SyntaxProblem {
  Position at;
  std::string message;
  std::string hint;  // empty if the mistake is not a known one
};

// The problem to report for `error`, at its cause in `text` rather than where the parser noticed it.
SyntaxProblem Diagnose(const SyntaxError& error, std::string_view text);

}  // namespace dtrun::spec
