// Shared by process tests: scratch folders, marked processes, recorded output.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/base/fd.h"
#include "core/output/output.h"
#include "core/process/process.h"

namespace dtrun::process::testing {

class ScratchDir {
 public:
  explicit ScratchDir(const std::string& parent = "/tmp") {
    std::string name = parent + "/dtrun-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~ScratchDir() { std::filesystem::remove_all(path_); }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Polls until `condition` holds; false after a timeout that only a broken program reaches.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Living processes started with DTRUN_TEST_MARK=`mark` in their environment.
inline std::vector<pid_t> Marked(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(it->path().filename().c_str(), nullptr, 10));
    if (pid <= 0 || StartEnvironment(pid, "DTRUN_TEST_MARK") != mark) continue;
    const auto process = ReadProcess(pid);
    if (process && process->state != 'Z') found.push_back(pid);
  }
  return found;
}

// A mark that no other test uses, not even a concurrent one.
inline std::string NewMark() {
  static int count = 0;
  return std::to_string(::getpid()) + "." + std::to_string(++count);
}

class MemoryOutput : public output::RankOutput {
 public:
  void Feed(output::Stream stream, std::string_view bytes) override {
    (stream == output::Stream::kOut ? out : err).append(bytes);
    if (on_feed) on_feed();
  }
  void Close(output::Stream) override { ++closed; }
  void Idle() override {}
  std::vector<std::string> Tail(std::size_t) const override { return {out}; }

  std::string out, err;
  int closed = 0;
  std::function<void()> on_feed;
};

struct SocketPair {
  SocketPair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  UniqueFd ours, theirs;
};

}  // namespace dtrun::process::testing
