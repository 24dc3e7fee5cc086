// dtrun/plugin/process_watch.hpp - which process a rank is, and which ranks' processes have ended.
//
// Not part of plugin.hpp. A vendor library polls its peers only now and then, or takes a killed process for
// alive until its parent has reaped it; a pidfd becomes readable at once. Functions: any thread. A
// ProcessWatch: one thread at a time changes it, and no other reads it meanwhile.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace dtrun::sdk {
inline namespace v0 __attribute__((visibility("hidden"))) {

  // The boot id of this host's kernel; "" where it is not known.
  inline std::string BootId() {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
  }

  namespace internal {
  // Clock ticks from boot to the process's start; "" when there is no such process. Field 22 of
  // proc(5)'s stat, counted from behind the name, which may hold anything.
  inline std::string StartOf(const std::string& process) {
    std::ifstream file("/proc/" + process + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    if (name_end == std::string::npos) return "";
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    for (int number = 3; number <= 22; ++number) fields >> field;
    return field;
  }
  inline std::string ProcessNamespace() {
    char text[64];
    const ssize_t size = readlink("/proc/self/ns/pid", text, sizeof text);
    return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
  }
  }  // namespace internal

  // Identifies this process among those of all hosts: boot id, PID namespace, PID, start time.
  inline std::string ProcessIdentity() {
    return BootId() + " " + internal::ProcessNamespace() + " " + std::to_string(getpid()) + " " +
           internal::StartOf("self");
  }

  // A descriptor that is readable once the process has ended; the caller closes it. -1 when it is
  // this process, or cannot be watched from here: another host, container, or an old kernel.
  inline int WatchProcess(const std::string& identity) {
    std::istringstream fields(identity);
    std::string boot, space, start;
    pid_t process = -1;
    fields >> boot >> space >> process >> start;
    if (!fields || boot != BootId() || space != internal::ProcessNamespace() || process == getpid())
      return -1;
    const auto watch = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    // Gone already, or its number now belongs to another: a descriptor that is readable at once.
    if ((watch < 0 && errno == ESRCH) ||
        (watch >= 0 && internal::StartOf(std::to_string(process)) != start)) {
      if (watch >= 0) close(watch);
      return eventfd(1, EFD_CLOEXEC);
    }
    return watch;
  }

  // The processes of ranks, as far as they can be watched from here.
  class ProcessWatch {
   public:
    ProcessWatch() = default;
    ProcessWatch(ProcessWatch&& other) noexcept { watches_.swap(other.watches_); }
    ProcessWatch& operator=(ProcessWatch&& other) noexcept {
      watches_.swap(other.watches_);
      return *this;
    }
    ~ProcessWatch() {
      for (const auto& [rank, descriptor] : watches_) close(descriptor);
    }

    // `identity` is the ProcessIdentity of `rank`; a rank that is watched already stays so.
    void Add(int rank, const std::string& identity) {
      if (watches_.count(rank) != 0) return;
      if (const int descriptor = WatchProcess(identity); descriptor >= 0) watches_[rank] = descriptor;
    }
    void Remove(int rank) {
      const auto watch = watches_.find(rank);
      if (watch == watches_.end()) return;
      close(watch->second);
      watches_.erase(watch);
    }
    // Ranks whose processes have ended, in ascending order.
    std::vector<int> Ended() const {
      std::vector<pollfd> polls;
      AppendTo(polls);
      std::vector<int> ended;
      if (poll(polls.data(), polls.size(), 0) <= 0) return ended;
      auto next = polls.begin();
      for (const auto& [rank, descriptor] : watches_) {
        if ((next++->revents & POLLIN) != 0) ended.push_back(rank);
      }
      return ended;
    }
    // Adds the descriptors that a sleeping thread polls so that the end of a process wakes it.
    void AppendTo(std::vector<pollfd>& polls) const {
      for (const auto& [rank, descriptor] : watches_) polls.push_back({descriptor, POLLIN, 0});
    }

   private:
    std::map<int, int> watches_;  // a descriptor for each rank
  };

}  // namespace v0
}  // namespace dtrun::sdk
