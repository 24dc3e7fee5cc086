#include "family.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

namespace dtrun::conformance::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{10};

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
};

// Of "PID (NAME) STATE PARENT ..."; a name may have parentheses and blanks.
Process ReadProcess(const fs::path& folder) {
  std::ifstream in(folder / "stat");
  std::string text;
  std::getline(in, text, '\0');  // unlike an iterator, it does not throw when the process ends just now
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos) return {};
  std::istringstream rest(text.substr(close + 1));
  Process process;
  char state = 0;
  rest >> state >> process.parent;
  process.pid = std::atoi(text.c_str());
  process.name = text.substr(open + 1, close - open - 1);
  return process;
}

// Not by /proc/PID/task/TID/children, which many kernels are built without.
std::vector<Process> AllProcesses() {
  std::vector<Process> all;
  std::error_code gone;
  for (fs::directory_iterator at("/proc", gone), end; !gone && at != end; at.increment(gone)) {
    if (std::isdigit(static_cast<unsigned char>(at->path().filename().native()[0])) == 0) continue;
    Process process = ReadProcess(at->path());
    if (process.pid > 0) all.push_back(std::move(process));
  }
  return all;
}

}  // namespace

Family::Family() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const Process& process : AllProcesses()) {
    if (process.parent == getpid()) earlier_.insert(process.pid);
  }
}

std::map<pid_t, std::string> Family::Descendants() const {
  std::multimap<pid_t, Process> by_parent;
  for (Process& process : AllProcesses()) by_parent.emplace(process.parent, std::move(process));
  std::map<pid_t, std::string> found;
  std::vector<pid_t> open = {getpid()};
  while (!open.empty()) {
    const auto [begin, end] = by_parent.equal_range(open.back());
    open.pop_back();
    std::for_each(begin, end, [&](const auto& entry) {
      const Process& child = entry.second;
      if (earlier_.count(child.pid) != 0 || !found.emplace(child.pid, child.name).second) return;
      open.push_back(child.pid);
    });
  }
  return found;
}

std::map<pid_t, std::string> Family::EndAll() const {
  std::map<pid_t, std::string> all;
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    const std::map<pid_t, std::string> now = Descendants();
    all.insert(now.begin(), now.end());
    if (now.empty() || Clock::now() > deadline) return all;
    for (const auto& [pid, name] : now) kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // One by one: what was there earlier has others who wait for it.
    for (const auto& [pid, name] : now) waitpid(pid, nullptr, WNOHANG);
  }
}

std::string OwnName() { return ReadProcess("/proc/self").name; }

}  // namespace dtrun::conformance::tool
