#include "core/comm/shm/reach.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>

#include "dtrun/plugin.hpp"

namespace dtrun::shm {
namespace {

// "user:[4026531837]"; "-" if /proc does not show it.
std::string NamespaceOf(const char* kind) {
  std::array<char, 64> text;
  const ssize_t size = ::readlink(fmt::format("/proc/self/ns/{}", kind).c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "-";
}

struct Place {
  int rank = -1;
  std::string users, processes;
  pid_t pid = -1;
  int fd = -1;
  std::uint64_t nonce = 0;

  std::string Text() const {
    return fmt::format("{} {} {} {} {} {}", rank, users, processes, pid, fd, nonce);
  }
  static Place Of(const std::string& text) {
    Place place;
    std::istringstream(text) >> place.rank >> place.users >> place.processes >> place.pid >> place.fd >>
        place.nonce;
    return place;
  }
};

std::string WhyApart(const Place& mine, const Place& first) {
  const auto other = [&](const char* what) {
    return fmt::format("rank {} is in another {} than rank {}", mine.rank, what, first.rank);
  };
  if (mine.users != first.users) return other("user namespace");
  if (mine.processes != first.processes) return other("PID namespace");
  try {
    const Memory memory = Memory::Open(first.pid, first.fd);
    std::uint64_t nonce = 0;
    if (memory.bytes() == sizeof nonce) std::memcpy(&nonce, memory.data(), sizeof nonce);
    return nonce == first.nonce ? "" : other("/proc");
  } catch (const sdk::Failure& failure) {
    return fmt::format("rank {} cannot {}", mine.rank, failure.what());
  }
}

}  // namespace

Result<std::string> Reach::WhyNot(dtrun_kv& kv, int rank, int host) {
  Place mine{rank, NamespaceOf("user"), NamespaceOf("pid"), ::getpid(), -1, 0};
  try {
    sample_ = Memory::Create("dtrun-reach", sizeof mine.nonce);
  } catch (const sdk::Failure& failure) {
    return fmt::format("rank {} cannot {}", rank, failure.what());
  }
  if (::getrandom(&mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce) return Error::System("draw a number", errno);
  std::memcpy(sample_.data(), &mine.nonce, sizeof mine.nonce);
  mine.fd = sample_.fd();
  const std::string key = fmt::format("first/{}", host);
  const Result<bool> is_first = kv.CompareSet(key, false, {}, mine.Text());
  if (!is_first) return is_first.error();
  if (*is_first) return std::string();
  const Result<std::string> first = kv.TryGet(key);
  if (!first) return first.error();
  return WhyApart(mine, Place::Of(*first));
}

}  // namespace dtrun::shm
