// memcpy on all ranks at once: the memory bandwidth of this host, as the reference for collectives. Needs no
// communicator; ranks synchronise through a shared page. Main thread.
#pragma once

#include <atomic>

#include "tools/bench/program/peer.h"

namespace dtrun::bench {

class CopyPeer : public Peer {
 public:
  // `path`: a file that all ranks open; the first one creates it.
  explicit CopyPeer(const char* path);
  ~CopyPeer() override;
  CopyPeer(const CopyPeer&) = delete;
  CopyPeer& operator=(const CopyPeer&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string description() const override;
  void Run(const Call& call) override;
  void Barrier() override;

 private:
  struct SharedPage {
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> round;
  };
  int rank_, ranks_;
  SharedPage* page_;
};

}  // namespace dtrun::bench
