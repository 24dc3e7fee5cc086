// algorithms.hpp - every collective, for a plugin that offers only send and receive.
//
// A plugin implements Messenger and gives its dtrun_op to RunCollective; it links
// `dtrun::algorithms`, a static library with hidden symbols, and `dtrun::kernels`. Size and
// number of ranks select the algorithm; all ranks know both, so all choose the same. The plugin owns the
// messenger and the scratch pool, which outlive each call. A call blocks the thread that makes it; calls on
// several communicators may run at the same time.
//
// Results are bitwise the same on all ranks. 16-bit floats are widened to float32, combined
// there and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::algorithms {

// Scratch memory, reused from call to call. What a call gives back is kept for the next, up to a limit,
// because the page faults of fresh memory take as long as the messages. One thread.
class ScratchPool {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  // At least `bytes` of them, uninitialised.
  Block Take(std::size_t bytes);
  // REQUIRES a block from Take.
  void Give(Block block);
  // Total size of the blocks that are kept.
  std::size_t bytes() const;

 private:
  std::vector<Block> kept_;  // the last one was given back last
  std::size_t given_out_ = 0;
};

// Point-to-point messages between the ranks of one communicator. Made and owned by the
// plugin; used by the thread that runs the collective.
//
// Messages from one rank to another match in the order in which both sides started them.
// Every method but rank, size and Cancel throws sdk::Failure when the communicator fails, is
// aborted, or when the operation's deadline has passed.
class Messenger {
 public:
  // A message under way; opaque to the algorithms. Null: complete.
  using Message = void*;

  Messenger() = default;
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  virtual ~Messenger() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Start a message of `bytes` >= 0 and return at once; the memory stays valid until Wait or
  // Cancel has returned. Both sides give the same `bytes`. `peer` is never this rank.
  // A message of 0 bytes is still a message: the receive completes only after the peer has sent. The
  // barrier consists of such messages.
  virtual Message Send(int peer, const void* data, std::size_t bytes) = 0;
  virtual Message Recv(int peer, void* data, std::size_t bytes) = 0;
  // Blocks until the message is complete and forgets it. Called once for each, in any order.
  virtual void Wait(Message message) = 0;
  // Ends every message that was started and not waited for; their memory is not touched after
  // that. Called when a collective fails in the middle; no Send or Recv follows.
  virtual void Cancel() noexcept = 0;

  // Scratch memory for the collectives on this messenger.
  ScratchPool& scratch() { return scratch_; }

 private:
  ScratchPool scratch_;
};

// Carries out `op`. REQUIRES a collective: any other kind throws sdk::Failure. Returns when this rank's part
// is complete and its buffers are the caller's again, also when it throws.
void RunCollective(Messenger& messenger, const dtrun_op& op);

// The same in a communicator of one rank: what it sends is what it gets.
void RunAlone(const dtrun_op& op);

}  // namespace dtrun::algorithms
