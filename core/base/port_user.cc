#include "core/base/port_user.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace dtrun {
namespace {

namespace fs = std::filesystem;

// A local end of some connection or listener on the port, from /proc/net/tcp or tcp6.
struct Entry {
  std::string state;  // "0A" is listening
  std::string inode;  // "0" for connections that no process holds any more
};

std::vector<Entry> EntriesOf(int port) {
  const std::string suffix = fmt::format(":{:04X}", port);
  std::vector<Entry> entries;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // headings
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, skipped;
      Entry entry;
      fields >> slot >> local >> remote >> entry.state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> entry.inode;
      if (local.ends_with(suffix)) entries.push_back(entry);
    }
  }
  return entries;
}

// "pid 4242 (python3)", or empty when it cannot be seen: another user's, or a container's.
std::string HolderOf(const std::string& inode) {
  const std::string wanted = "socket:[" + inode + "]";
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(process->path().filename().c_str(), nullptr, 10));
    if (pid <= 0) continue;
    std::error_code closed;  // not ours to look into
    for (fs::directory_iterator fd(process->path() / "fd", closed), last; !closed && fd != last;
         fd.increment(closed)) {
      std::error_code gone;
      if (fs::read_symlink(fd->path(), gone) != wanted) continue;
      std::string name;
      std::getline(std::ifstream(process->path() / "comm"), name);
      return fmt::format("process {} ({})", pid, name.empty() ? "?" : name);
    }
  }
  return {};
}

}  // namespace

Error PortInUse(int port) {
  const std::vector<Entry> entries = EntriesOf(port);
  std::string holder;
  for (const char* state : {"0A", ""}) {
    for (const Entry& entry : entries) {
      if (!holder.empty() || entry.inode == "0" || !entry.state.starts_with(state)) continue;
      holder = HolderOf(entry.inode);
    }
  }
  if (holder.empty()) {
    holder = entries.empty() ? "a socket that does not listen yet, such as another dtrun job"
                             : "a process of another user or container";
  }
  return Error{DTRUN_BUSY,
               fmt::format("port {} is in use by {}; end it, choose another port, or let dtrun choose "
                           "by leaving the port unset",
                           port, holder)};
}

bool OnlyFading(int port) {
  const std::vector<Entry> entries = EntriesOf(port);
  bool fading = !entries.empty();
  for (const Entry& entry : entries) fading = fading && entry.inode == "0";
  return fading;
}

}  // namespace dtrun
