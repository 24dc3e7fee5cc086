// Reading and writing one journal of the flight recorder.
//
// A journal has one writer, never two threads at once: the rank whose journal it is, or, for a rank
// of another host, the agent. Anybody may read meanwhile, and finds whole entries.
#pragma once

#include <optional>
#include <string_view>

#include "core/comm/recorder/book.h"

namespace dtrun::comm {

// The chain after `call`, whose predecessor's is `chain`.
std::uint64_t NextChain(std::uint64_t chain, const sdk::Signature& call);
// Digest of a communicator's name; never 0.
std::uint64_t NameDigest(std::string_view name);
// A free journal of a rank of the world becomes that of a communicator: null when there is none. `rank`
// and `size` are those in the communicator.
Journal* OpenJournal(const Book& book, int world_rank, std::uint64_t communicator, std::string_view name,
                     int rank, int size);

// Notes that call `number` begins.
void Begin(Journal& journal, std::uint64_t number, const sdk::Signature& call);
// Notes that it has ended; calls may end in any order.
void End(Journal& journal, std::uint64_t number);
// The call with that number, when it is still remembered.
bool Read(const Journal& journal, std::uint64_t number, sdk::Signature* call, std::uint64_t* chain);
// Writes a call whose chain is known already.
void Write(Journal& journal, std::uint64_t number, const sdk::Signature& call, std::uint64_t chain);

// The chain of call `number`, when that is a checkpoint and still remembered.
std::optional<std::uint64_t> ReadCheckpoint(const Journal& journal, std::uint64_t number);
void WriteCheckpoint(Journal& journal, std::uint64_t number, std::uint64_t chain);
// The largest that is whole; 0: none yet.
std::uint64_t LastCheckpoint(const Journal& journal);

}  // namespace dtrun::comm
