// dtrun/plugin/process_watch.hpp - which process a rank is, and which ranks' processes have ended.
//
// Not part of plugin.hpp. A vendor library polls its peers only now and then, or takes a killed process for
// alive until its parent has reaped it; a pidfd becomes readable at once. Only "no such process" means that a
// process has ended: a pidfd that cannot be had, because descriptors have run out or a seccomp profile denies
// it, says nothing about the peer; its number is then polled. Functions and a PeerProcess: any
// thread. A ProcessWatch: one thread at a time changes it, and no other reads it meanwhile.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  namespace internal {
  inline std::string ReadBootId() {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
  }
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

  // The boot id of this host's kernel; "" where it is not known. Kept, as descriptors may run out.
  inline std::string BootId() {
    static const std::string kept = internal::ReadBootId();
    return kept.empty() ? internal::ReadBootId() : kept;
  }

  // Identifies this process among those of all hosts: boot id, PID namespace, PID, start time.
  inline std::string ProcessIdentity() {
    return BootId() + " " + internal::ProcessNamespace() + " " + std::to_string(getpid()) + " " +
           internal::StartOf("self");
  }

  // Another process of this PID namespace. All that ask for the same one share one descriptor.
  class PeerProcess {
   public:
    // `start`: StartOf that process, "" where that is not known.
    static std::shared_ptr<const PeerProcess> Of(pid_t process, const std::string& start) {
      // Never destroyed: communicators end as late as they like.
      static auto* const all = new std::map<std::pair<pid_t, std::string>, std::weak_ptr<const PeerProcess>>;
      static auto* const mutex = new std::mutex;
      const std::lock_guard<std::mutex> lock(*mutex);
      std::weak_ptr<const PeerProcess>& known = (*all)[{process, start}];
      std::shared_ptr<const PeerProcess> peer = known.lock();
      if (!peer) known = peer = std::shared_ptr<const PeerProcess>(new PeerProcess(process, start));
      return peer;
    }
    // Null when `identity` is this process, or cannot be watched from here: another host or container.
    static std::shared_ptr<const PeerProcess> Find(const std::string& identity) {
      std::istringstream fields(identity);
      std::string boot, space, start;
      pid_t process = -1;
      fields >> boot >> space >> process >> start;
      if (!fields || boot != BootId() || space != internal::ProcessNamespace() || process == getpid())
        return nullptr;
      return Of(process, start);
    }
    ~PeerProcess() {
      if (descriptor_ >= 0) close(descriptor_);
    }
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;

    bool Ended() const {
      if (ended_) return true;
      pollfd entry{descriptor_, POLLIN, 0};
      if (descriptor_ >= 0) return poll(&entry, 1, 0) > 0;
      return (kill(process_, 0) != 0 && errno == ESRCH) || IsAnother();
    }
    // Readable once it has ended; -1 where the kernel gives none, `why_unseen` is errno then.
    int descriptor() const { return descriptor_; }
    int why_unseen() const { return why_unseen_; }

   private:
    PeerProcess(pid_t process, std::string start) : process_(process), start_(std::move(start)) {
      descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, process_, 0));
      if (descriptor_ < 0) why_unseen_ = errno;
      ended_ = why_unseen_ == ESRCH || IsAnother();
      if (!ended_) return;
      if (descriptor_ >= 0) close(descriptor_);
      descriptor_ = eventfd(1, EFD_CLOEXEC);
    }
    // Whether the number now belongs to another process. What cannot be read is no evidence.
    bool IsAnother() const {
      const std::string now = start_.empty() ? "" : internal::StartOf(std::to_string(process_));
      return !now.empty() && now != start_;
    }

    const pid_t process_;
    const std::string start_;
    int descriptor_ = -1;
    int why_unseen_ = 0;
    bool ended_ = false;  // when it was looked for
  };

  // The processes of ranks, as far as they can be watched from here.
  class ProcessWatch {
   public:
    // `identity` is the ProcessIdentity of `rank`; a rank that is watched already stays so.
    void Add(int rank, const std::string& identity) {
      if (watches_.count(rank) != 0) return;
      if (auto process = PeerProcess::Find(identity)) watches_[rank] = std::move(process);
    }
    void Remove(int rank) { watches_.erase(rank); }
    // Ranks with ended processes, in ascending order.
    std::vector<int> Ended() const {
      std::vector<pollfd> polls;
      for (const auto& [rank, process] : watches_) polls.push_back({process->descriptor(), POLLIN, 0});
      std::vector<int> ended;
      poll(polls.data(), polls.size(), 0);
      auto next = polls.begin();
      for (const auto& [rank, process] : watches_) {
        const pollfd& entry = *next++;
        if (entry.fd < 0 ? process->Ended() : (entry.revents & POLLIN) != 0) ended.push_back(rank);
      }
      return ended;
    }
    // Adds the descriptors that a sleeping thread polls so that the end of a process wakes it.
    void AppendTo(std::vector<pollfd>& polls) const {
      for (const auto& [rank, process] : watches_) {
        if (process->descriptor() >= 0) polls.push_back({process->descriptor(), POLLIN, 0});
      }
    }

   private:
    std::map<int, std::shared_ptr<const PeerProcess>> watches_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
