#include "process_state.h"

#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "subject.h"

namespace dtrun::conformance {
namespace {

void AddSignals(std::map<std::string, std::string>* settings) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int number = 1; number < SIGRTMAX; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0) continue;
    const std::string name = "signal " + std::to_string(number);
    (*settings)[name] = action.sa_handler == SIG_DFL   ? "default"
                        : action.sa_handler == SIG_IGN ? "ignored"
                                                       : "handled";
    (*settings)[name + " in the mask"] = sigismember(&mask, number) == 1 ? "blocked" : "open";
  }
}

std::string Umask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Umask:", 0) == 0) return line.substr(7);
  }
  return "unknown";
}

std::map<int, std::string> Files() {
  std::map<int, std::string> files;
  std::error_code gone;  // that of the walk itself
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    if (target.find("/fd") == std::string::npos || target.rfind("/proc/", 0) != 0)
      files[std::stoi(entry.path().filename())] = target;
  }
  return files;
}

std::size_t SharedMappings() {
  std::size_t count = 0;
  std::ifstream maps("/proc/self/maps");  // "7f00-7f01 rw-s ..."
  for (std::string line; std::getline(maps, line);) {
    const std::size_t mode = line.find(' ') + 1;
    count += line.size() > mode + 3 && line[mode + 3] == 's' ? 1 : 0;
  }
  return count;
}

template <class Map>
void CompareAll(const Map& before, const Map& after, const char* what, std::string* out) {
  const auto name = [&](const auto& key) {
    if constexpr (std::is_same_v<std::decay_t<decltype(key)>, int>)
      return what + std::to_string(key);
    else
      return what + key;
  };
  for (const auto& [key, value] : after) {
    const auto old = before.find(key);
    if (old == before.end())
      *out += name(key) + " is new: '" + value + "'\n";
    else if (old->second != value)
      *out += name(key) + " was '" + old->second + "', is '" + value + "'\n";
  }
  for (const auto& [key, value] : before) {
    if (after.find(key) == after.end()) *out += name(key) + ", '" + value + "', is gone\n";
  }
}

}  // namespace

ProcessState ProcessState::Now() {
  ProcessState now;
  AddSignals(&now.settings);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::size_t equals = text.find('=');
    now.settings["variable " + text.substr(0, equals)] = equals == text.npos ? "" : text.substr(equals + 1);
  }
  std::error_code gone;
  now.settings["working folder"] = std::filesystem::current_path(gone);
  now.settings["umask"] = Umask();
  now.settings["locale"] = setlocale(LC_ALL, nullptr);
  now.files = Files();
  now.mappings = SharedMappings();
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  now.threads = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  return now;
}

ProcessState ProcessState::Settled(std::size_t threads) {
  constexpr std::chrono::seconds kMoment{5};  // on a busy machine
  const auto deadline = std::chrono::steady_clock::now() + kMoment;
  ProcessState now = Now();
  while (now.threads > threads && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = Now();
  }
  return now;
}

std::string Changes(const ProcessState& before, const ProcessState& after, bool resources) {
  std::string text;
  CompareAll(before.settings, after.settings, "", &text);
  if (!resources) return text;
  CompareAll(before.files, after.files, "descriptor ", &text);
  if (after.threads > before.threads) {
    text += std::to_string(after.threads - before.threads) + " more threads\n";
  }
  if (after.mappings > before.mappings)
    text += std::to_string(after.mappings - before.mappings) + " more mappings of shared memory\n";
  return text;
}

}  // namespace dtrun::conformance
