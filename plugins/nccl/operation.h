// One operation from enqueue to its outcome: what to do, where, until when, and how it ended.
//
// Made by the communicator, shared by it (while the operation waits in a group) and its
// request. What is done is constant; how it goes belongs to the communicator's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device_memory.h"
#include "element.h"

namespace dtrun::nccl_plugin {

using Clock = sdk::Deadline::Clock;

// A part of a buffer that goes to, or comes from, each rank; in elements.
struct Part {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

enum class Phase {
  kGrouped,   // not started yet: in a group, or on its way
  kLaunched,  // handed to the device; its event is recorded
  kDone,
  kFailed,  // the communicator's failure is its own
};

struct Operation {
  dtrun_op op{};  // its arrays are gone; see the parts
  std::vector<Part> send_parts;
  std::vector<Part> recv_parts;
  Wire wire{nccl::kInt8, 1};
  std::uint64_t width = 1;  // bytes of an element
  cuda::Stream stream = nullptr;
  sdk::Deadline deadline;
  std::string text;           // "allreduce 5", "recv from rank 2"
  std::uint64_t message = 0;  // send, recv: its number between the two ranks, from 1
  Clock::time_point begun = Clock::now();

  DeviceBuffer copy;  // of the send buffer, where NCCL would overwrite what it has yet to send
  Phase phase = Phase::kGrouped;
  cuda::Event event = nullptr;
  bool dropped = false;  // nobody holds its request any more
  bool ordered = false;  // a stream waits for it, so nobody needs to keep the host waiting

  bool point_to_point() const { return op.kind == DTRUN_SEND || op.kind == DTRUN_RECV; }
};

// Whether operations of this kind combine values.
inline bool Reduces(std::int32_t kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}

// Where an operation happens.
struct Site {
  const std::string& name;
  int rank;
  int size;
};

// Reads and checks `raw`; throws sdk::Failure. Whether pointers are device memory is not asked
// here. Fills everything but stream and deadline.
Operation ReadOperation(const dtrun_op& raw, const Site& site);

}  // namespace dtrun::nccl_plugin
