// Reading and writing one ring of the flight recorder.
//
// A ring has one writer, never two threads at once: its rank or, for a rank of another host, the agent. Any
// process may read meanwhile, and finds whole entries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

// In the kind of a call that connects the ranks by a device, beside the operation that needs it; alone, it is
// dtrun_comm_connect. All such calls are alike.
inline constexpr std::uint8_t kConnects = 0x80;

// Whether two ranks that make these calls agree.
bool Alike(const sdk::Signature& a, const sdk::Signature& b);
// "allreduce (float32 x 8, sum, cuda memory)". `device`: the name of its kind of device.
std::string CallText(const sdk::Signature& call, const std::string& device);

// The chain after `call`; `chain` is its predecessor's.
std::uint64_t NextChain(std::uint64_t chain, const sdk::Signature& call);
// Digest of a communicator's name; never 0.
std::uint64_t NameDigest(std::string_view name);
// Tells apart the communicators of one name that a rank has had: the `nth` one of a turn (Recorder::Open).
// All members count alike.
constexpr std::uint64_t IdentityOf(std::uint64_t communicator, std::uint64_t turn, std::uint64_t nth) {
  return communicator + (turn << 40) + 2 * nth;
}
// Turns a free ring of a world rank into a communicator's; null if there is none. `rank` and `size` are those
// in the communicator. `identity` 0: not known.
Ring* OpenRing(const RecorderMemory& recorder_memory, int world_rank, std::uint64_t communicator,
               std::string_view name, int rank, int size, std::uint64_t identity = 0);

// Names the devices that its calls use, for messages; truncates long names.
void NameDevice(Ring& ring, std::string_view name);
// That name, printable.
std::string DeviceOf(const Ring& ring);

// Records that call `number` begins.
void Begin(Ring& ring, std::uint64_t number, const sdk::Signature& call);
// Records that it has ended; calls may end in any order.
void End(Ring& ring, std::uint64_t number);
// Records that the rank has asked whether a call is done, and has learnt that it is not. Any thread.
void NoteAsked(Ring& ring);
// Whether that was less than two seconds ago.
bool AskedLately(const Ring& ring);
// The call with that number, if it is still remembered.
struct Remembered {
  sdk::Signature call;
  std::uint64_t chain = 0;
};
std::optional<Remembered> Read(const Ring& ring, std::uint64_t number);
// Writes a call with a known chain.
void Write(Ring& ring, std::uint64_t number, const sdk::Signature& call, std::uint64_t chain);

// The chain of call `number`, if that is a checkpoint and still remembered.
std::optional<std::uint64_t> ReadCheckpoint(const Ring& ring, std::uint64_t number);
void WriteCheckpoint(Ring& ring, std::uint64_t number, std::uint64_t chain);
// The largest that is whole; 0: none yet.
std::uint64_t LastCheckpoint(const Ring& ring);

// The header of a ring, read once and validated: ranks write their pages themselves, and a rank with corrupt
// memory may write anything, so a reader takes its own copy and checks it.
struct Heading {
  std::uint64_t communicator = 0;  // 0: it has ended, and its ring is free
  std::uint64_t identity = 0;      // IdentityOf; 0: not known
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
  std::int32_t rank = -1;  // in the communicator
  std::int32_t size = 0;
  std::string name;  // printable
};

// At most one of the two is set. Neither: the ring is unused, or has just changed its communicator.
struct HeadingRead {
  std::optional<Heading> heading;
  const char* damage = nullptr;  // why it is invalid, for messages
};

// In a world of `ranks` ranks.
HeadingRead ReadHeading(const Ring& ring, int ranks);

// Why the calls that `ring` remembers cannot be what its rank called; null if they may be. Reads all of them.
const char* DamageIn(const Ring& ring, const Heading& heading);

}  // namespace dtrun::contract
