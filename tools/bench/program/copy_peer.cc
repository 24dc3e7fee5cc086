#include "tools/bench/program/copy_peer.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/contract/environment.h"

namespace dtrun::bench {
namespace {

[[noreturn]] void Throw(const char* path) {
  throw std::runtime_error(Error::System(std::string("share '") + path + "'", errno).text);
}

}  // namespace

CopyPeer::CopyPeer(const char* path)
    : rank_(RankVariable(contract::kRank)), ranks_(RankVariable(contract::kWorldSize)) {
  const UniqueFd file(::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || ::ftruncate(file.get(), sizeof(SharedPage)) != 0) Throw(path);
  void* place = ::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (place == MAP_FAILED) Throw(path);
  page_ = static_cast<SharedPage*>(place);  // zeros: no rank has arrived
}

CopyPeer::~CopyPeer() { ::munmap(page_, sizeof(SharedPage)); }

std::string CopyPeer::description() const {
  return std::string("memcpy of glibc ") + gnu_get_libc_version() + ", all ranks at once";
}

void CopyPeer::Run(const Call& call) {
  if (call.operation != Operation::kCopy) throw Unsupported("only memory is copied");
  std::memcpy(call.recv, call.send, call.shape.bytes);
  asm volatile("" ::: "memory");  // keeps the copy, although its result is unused
}

void CopyPeer::Barrier() {
  const std::uint32_t round = page_->round.load();
  if (page_->arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(ranks_)) {
    page_->arrived = 0;
    ++page_->round;
    return;
  }
  while (page_->round.load() == round) ::sched_yield();
}

}  // namespace dtrun::bench
