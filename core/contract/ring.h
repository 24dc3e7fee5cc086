// Reading and writing one ring of the flight recorder.
//
// A ring has one writer, never two threads at once: the rank whose ring it is, or, for a rank
// of another host, the agent. Anybody may read meanwhile, and finds whole entries.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

// In the kind of a call that connects the ranks by a device, beside the operation for which it does so;
// alone, it is dtrun_comm_connect. All such calls are alike.
inline constexpr std::uint8_t kConnects = 0x80;

// Whether ranks that make the two calls agree.
bool Alike(const sdk::Signature& a, const sdk::Signature& b);
// "allreduce (float32 x 8, sum, cuda memory)". `device`: what its kind of device is called.
std::string CallText(const sdk::Signature& call, const std::string& device);

// The chain after `call`, whose predecessor's is `chain`.
std::uint64_t NextChain(std::uint64_t chain, const sdk::Signature& call);
// Digest of a communicator's name; never 0.
std::uint64_t NameDigest(std::string_view name);
// A free ring of a rank of the world becomes that of a communicator: null when there is none. `rank`
// and `size` are those in the communicator.
Ring* OpenRing(const RecorderMemory& recorder_memory, int world_rank, std::uint64_t communicator,
               std::string_view name, int rank, int size);

// What texts call the devices whose memory its calls move; cut where it is too long.
void NameDevice(Ring& ring, std::string_view name);
// What was named, printable.
std::string DeviceOf(const Ring& ring);

// Notes that call `number` begins.
void Begin(Ring& ring, std::uint64_t number, const sdk::Signature& call);
// Notes that it has ended; calls may end in any order.
void End(Ring& ring, std::uint64_t number);
// The call with that number, when it is still remembered.
bool Read(const Ring& ring, std::uint64_t number, sdk::Signature* call, std::uint64_t* chain);
// Writes a call whose chain is known already.
void Write(Ring& ring, std::uint64_t number, const sdk::Signature& call, std::uint64_t chain);

// The chain of call `number`, when that is a checkpoint and still remembered.
std::optional<std::uint64_t> ReadCheckpoint(const Ring& ring, std::uint64_t number);
void WriteCheckpoint(Ring& ring, std::uint64_t number, std::uint64_t chain);
// The largest that is whole; 0: none yet.
std::uint64_t LastCheckpoint(const Ring& ring);

}  // namespace dtrun::contract
