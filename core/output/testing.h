// Helpers for this folder's tests: a temporary folder, file contents, pipes, limits and a console.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/output/output.h"

namespace dtrun::output {

// Deleted recursively by the destructor.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dtrun-output-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (error) std::fprintf(stderr, "%s: %s\n", path_.c_str(), error.message().c_str());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Sets the soft file-size limit of this process while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  UniqueFd reader;
  UniqueFd writer;
};

// Reads from `fd` until `enough` accepts the text so far, end of file, or `limit_ms` without a byte.
inline std::string ReadUntil(int fd, const std::function<bool(const std::string&)>& enough,
                             int limit_ms = 30'000) {
  std::string got;
  char buffer[65536];
  while (!enough(got)) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, limit_ms) <= 0) break;
    const ssize_t size = read(fd, buffer, sizeof buffer);
    if (size <= 0) break;
    got.append(buffer, static_cast<std::size_t>(size));
  }
  return got;
}

// Records its input.
class FakeConsole final : public Console {
 public:
  explicit FakeConsole(bool is_terminal) : is_terminal_(is_terminal) {}

  void SpillInto(const std::filesystem::path&) override {}
  void Line(Stream stream, std::string_view text) override {
    ++calls;
    std::string rest(text);
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.erase(0, end + 1)) {
      lines.emplace_back(stream, rest.substr(0, end));
    }
    lines.emplace_back(stream, rest);
  }
  void Transient(int source, std::string_view text) override { states.emplace_back(source, text); }
  bool Drain(int, int) override { return true; }
  std::uint64_t GiveUp() override { return 0; }
  bool terminal(Stream) const override { return is_terminal_; }
  int columns(Stream) const override { return 80; }

  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const auto& [stream, text] : lines) texts.push_back(text);
    return texts;
  }

  int calls = 0;
  std::vector<std::pair<Stream, std::string>> lines;
  std::vector<std::pair<int, std::string>> states;

 private:
  bool is_terminal_;
};

}  // namespace dtrun::output
