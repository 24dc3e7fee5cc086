// Reading a config file: what can be wrong before its text is looked at. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/base/result.h"

namespace dtrun::config {

inline constexpr std::size_t kMaxFileBytes = 1 << 20;

// The bytes of `path`, which may be a pipe, without a byte order mark of UTF-8. Ends in bounded time. The
// error does not repeat the path.
Result<std::string> ReadFile(const std::filesystem::path& path);

// A file of a like name that could be read in the place of `path`, which cannot; or where that was looked
// for.
std::string WhereElse(const std::filesystem::path& path);

}  // namespace dtrun::config
