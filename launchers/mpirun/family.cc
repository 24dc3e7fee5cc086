#include "launchers/mpirun/family.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>

namespace dtrun::mpirun {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kEnough = 4096;  // of what it prints

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Where it is; empty when it is nowhere.
std::string Find(const std::string& program, std::string_view path) {
  if (program.find('/') != std::string::npos) return program;
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const fs::path file = fs::path(path.substr(0, colon)) / program;
    if (::access(file.c_str(), X_OK) == 0) return file;
    path.remove_prefix(colon == path.npos ? path.size() : colon + 1);
  }
  return {};
}

// What it prints; what it has printed so far when it does not end in time.
std::string AskVersion(std::string file) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  std::string word = "--version";
  char* const argv[] = {file.data(), word.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const bool started = ::posix_spawn(&child, file.c_str(), &actions, nullptr, argv, environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  const auto deadline = Clock::now() + kPatience;
  while (started && text.size() < kEnough) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{ends[0], POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0) break;
    std::array<char, kEnough> chunk;
    const ssize_t size = ::read(ends[0], chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  if (!started) return {};
  if (text.size() >= kEnough || Clock::now() >= deadline) ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace

std::optional<Family> FamilyOfName(std::string_view name) {
  for (const std::string_view part : {"orterun", "prterun", "openmpi", "ompi"}) {
    if (Has(name, part)) return Family::kOpenMpi;
  }
  if (Has(name, "mpich")) return Family::kMpich;
  return std::nullopt;  // Intel's is a mpiexec.hydra too
}

std::optional<Family> FamilyOfVersion(std::string_view text) {
  if (Has(text, "Intel(R) MPI")) return Family::kIntel;
  if (Has(text, "HYDRA")) return Family::kMpich;
  for (const std::string_view part : {"Open MPI", "OpenRTE", "PRRTE", "prterun"}) {
    if (Has(text, part)) return Family::kOpenMpi;
  }
  return std::nullopt;
}

Family RecogniseFamily(const std::string& program, const std::string& path) {
  const std::string file = Find(program, path);
  std::error_code nowhere;
  const fs::path real = file.empty() ? fs::path() : fs::canonical(file, nowhere);
  for (const std::string& name : {real.filename().string(), fs::path(program).filename().string()}) {
    if (const auto family = FamilyOfName(name)) return *family;
  }
  if (!file.empty()) {
    if (const auto family = FamilyOfVersion(AskVersion(file))) return *family;
  }
  return Has(program, "hydra") ? Family::kMpich : Family::kOpenMpi;
}

}  // namespace dtrun::mpirun
