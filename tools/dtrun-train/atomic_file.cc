#include "tools/dtrun-train/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "core/base/fd.h"

namespace dtrun::train {
namespace {

Status WriteAndSync(const std::string& path, std::string_view content) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return Error::System(fmt::format("create '{}'", path), errno);
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::System(fmt::format("write '{}'", path), errno);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd.get()) != 0) return Error::System(fmt::format("sync '{}'", path), errno);
  return {};
}

}  // namespace

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp", path);
  if (Status s = WriteAndSync(temporary, content); !s) {
    ::unlink(temporary.c_str());
    return s;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = Error::System(fmt::format("rename '{}' to '{}'", temporary, path), errno);
    ::unlink(temporary.c_str());
    return error;
  }
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return Error::System(fmt::format("sync '{}'", folder), errno);
  return {};
}

Result<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Error::System(fmt::format("open '{}'", path), errno);
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::System(fmt::format("read '{}'", path), errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace dtrun::train
