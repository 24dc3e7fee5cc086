// The peer that measures libdtrun. One per process; main thread.
#pragma once

#include "dtrun/dtrun.hpp"
#include "tools/bench/program/peer.h"

namespace dtrun::bench {

class DtrunPeer : public Peer {
 public:
  int rank() const override { return dtrun_rank(); }
  int ranks() const override { return dtrun_world_size(); }
  std::string description() const override;
  void Run(const Call& call) override;
  void Barrier() override;
  void* Allocate(std::uint64_t bytes) override;
  void Free(void* memory) override;

 private:
  Session session_;
  dtrun_comm* const world_ = dtrun_world();
};

}  // namespace dtrun::bench
