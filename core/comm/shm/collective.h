// The collectives over shared memory.
//
// Every rank copies a piece of its operand to its stage, all ranks enter (or step), then all read what they
// need. Two alternating stages make one synchronisation per piece enough. The first piece is copied before
// the call is entered, so a small call costs one synchronisation. An operand of at most 32 bytes travels in
// the entry itself.
//
// allreduce and reduce of more than one piece: rank r combines part r of each piece, and copying the next
// piece hides the wait for the last results. With two ranks, each combines everything. If all buffers come
// from AllocateRegion, each rank reads and writes its part of all ranks' buffers directly. Elements are
// always combined in rank order, so all ranks get the same bits. Belongs to the thread that runs calls.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm/shm/group.h"
#include "core/comm/shm/region.h"
#include "dtrun/kernels.hpp"

namespace dtrun::shm {

class Collectives {
 public:
  explicit Collectives(Group& group);

  // Stages the operand of a small call and enters it, so that it reaches the others while this rank gets
  // ready to wait for theirs. Returns false, with nothing done, for any other call.
  bool Begin(const dtrun_op& op);
  // Runs `running.op`, any kind but send and recv, from where Begin left it. Throws sdk::Failure;
  // the group has failed then.
  void Run(Running& running);

 private:
  // What one rank gives to another, or takes from it.
  struct Give {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Take {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  static std::vector<Take> TakesOf(const dtrun_op& op, const sdk::Parts& parts);
  // How operands are combined; `kernel` null: they are only moved.
  struct Combine {
    kernels::Reduce kernel = nullptr;
    std::int32_t dtype = 0;
    bool scaled = false;
    double scale = 1;
  };
  static Combine CombineOf(const dtrun_op& op);
  // Copies operand bytes to where others can read them, scaled if the reduction requires it.
  static void Show(std::byte* to, const std::byte* from, std::size_t bytes, const Combine& combine);

  void EnterBarrier(const dtrun_op& op);
  // Enters `call` with a payload and waits for all.
  void Enter(const sdk::Signature& call, const void* payload, std::size_t bytes, std::uint32_t flags,
             Running& running);
  // True when every rank's entry has `flag`.
  bool AllHave(std::uint32_t flag) const;
  bool AnyHas(std::uint32_t flag) const;
  void StepTogether(Running& running) {
    group_.Step();
    group_.AwaitStep(group_.step(), running);
  }

  // ---- allreduce, reduce: reduction.cc ----
  struct Piece {
    std::size_t begin = 0;  // in elements of the whole operand
    std::size_t count = 0;
    std::uint32_t turn = 0;
  };
  void Reduction(Running& running);
  static bool Small(const dtrun_op& op);
  void EnterSmall(const dtrun_op& op);
  void SmallReduction(Running& running);
  void LargeReduction(Running& running, const Combine& combine);
  void StagedReduction(Running& running, const Combine& combine, Piece first);
  void PairReduction(Running& running, const Combine& combine, Piece piece);
  void DirectReduction(Running& running, const Combine& combine);
  void ShowPiece(const dtrun_op& op, const Piece& piece, const Combine& combine) const;
  void CombinePiece(const dtrun_op& op, const Piece& piece, const Combine& combine);
  void TakeResults(const dtrun_op& op, const Piece& piece) const;

  // ---- the rest ----
  void Shared(Running& running);    // broadcast, allgather(v), gather(v): all see one operand
  void Personal(Running& running);  // scatter(v), alltoall(v), reduce_scatter(v): a part for each
  void ShareStaged(const Give& own, const std::vector<Take>& takes, std::size_t longest, std::uint32_t turn,
                   Running& running);
  // What the ranks of the current call offer.
  struct Offers {
    std::size_t longest = 0;  // bytes that one rank gives to another
    bool hoped = false;       // a rank has not staged its first piece, in the hope that none needs it
  };
  Offers Offered() const;
  void PersonalDirect(const dtrun_op& op, const std::vector<Take>& takes, std::size_t begin,
                      Running& running);
  void ShareDirect(const std::vector<Take>& takes, Running& running);
  void CombineParts(const dtrun_op& op, const Give& own, const Take& take, std::size_t offset,
                    std::uint32_t turn, const Combine& combine);
  // For v-forms with counts that only one side knows: what `taken` expects of a rank must be what that rank
  // gives.
  void ShowCounts(const sdk::Parts& given);
  void CheckCounts(const dtrun_op& op, const sdk::Parts& taken);
  std::size_t SharePerRank() const { return group_.layout().stage_bytes / sources_.size() / kLine * kLine; }

  bool Root(const dtrun_op& op) const { return op.root == group_.rank(); }
  std::byte* Stage(int rank, std::uint32_t turn) const {
    return group_.at(group_.layout().stage_at(rank, turn));
  }
  std::byte* Result(int rank, std::uint32_t turn) const {
    return group_.at(group_.layout().result_at(rank, turn));
  }

  Group& group_;
  const int rank_;
  const int size_;
  PeerRegions peers_;
  std::vector<const void*> sources_;  // scratch of the reductions
};

}  // namespace dtrun::shm
