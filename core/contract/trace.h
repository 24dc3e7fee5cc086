// The trace of a rank: what its libdtrun writes, call by call, and what `dtrun trace` reads.
//
// A stream of records of 64 bytes in the byte order of x86-64. The rank writes it (core/comm/trace_writer.h)
// into a pipe of its agent; the root appends it to rank-N.trace. Times are of the rank's CLOCK_MONOTONIC; the
// first record has the same moment on CLOCK_REALTIME. Readers trust no field. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dtrun::contract {

inline constexpr std::uint64_t kTraceVersion = 1;
inline constexpr std::uint32_t kTraceMagic = 0x52545444;  // "DTTR"
// How long a call stays in the rank before the writer takes it: what a kill may lose.
inline constexpr int kTracePeriodMs = 100;

enum class TraceType : std::uint8_t {
  kBegin = 1,  // `thread`: the magic; `bytes`: version; `number`: pid; `start`, `given`: both clocks; `end`:
               // generation
  kCommunicator,  // `communicator`; `peer`: this rank in it; `thread`: its size; text: a part of
                  // "name\nbackend"
  kThread,        // `thread`; text: a part of its name
  kCall,
  kWait,  // the thread waited for call `number`
  kLost,  // `number` calls were not kept: a thread called faster than the writer wrote
  kCut,   // the trace has reached its limit and does not continue
  kEnd,   // the rank has left the job; `number`: of calls that it noted
};

// Flags of a call.
inline constexpr std::uint16_t kTraceAsync = 1;  // `end` is when the rank saw that it had ended
inline constexpr std::uint16_t kTraceFailed = 2;
inline constexpr std::uint16_t kTraceUnseen = 4;  // its handle was released before anybody saw the end
inline constexpr std::uint16_t kTraceDevice = 8;  // on a stream

struct TraceRecord {
  TraceType type{};
  std::uint8_t operation = 0;  // dtrun_op's kind, dtype and reduce
  std::uint8_t dtype = 0;
  std::uint8_t reduce = 0;
  std::uint16_t communicator = 0;
  std::uint16_t flags = 0;
  std::int32_t peer = -1;    // or root; a rank of the communicator
  std::uint32_t thread = 0;  // of the kernel
  std::uint64_t bytes = 0;   // count x size of an element, as the call gave them
  std::uint64_t number = 0;  // of a collective on its communicator; 0: a message
  std::int64_t start = 0;    // of the call
  std::int64_t given = 0;    // to the backend
  std::int64_t end = 0;
  std::uint64_t spare = 0;

  // Text stands in place of the numbers above.
  static constexpr std::size_t kTextBytes = 48;
  void SetText(std::string_view part);
  std::string Text() const;
};
static_assert(sizeof(TraceRecord) == 64 && offsetof(TraceRecord, bytes) + TraceRecord::kTextBytes == 64);

struct TraceCommunicator {
  std::string name, backend;
  int rank = -1, size = 0;
};

// A part of a trace: from one dtrun_init of the process to the next.
struct TraceSession {
  std::uint64_t pid = 0, generation = 0;
  std::int64_t monotonic = 0, realtime = 0;  // the same moment
  std::map<int, TraceCommunicator> communicators;
  std::map<std::uint32_t, std::string> threads;
  std::vector<TraceRecord> calls;  // kCall and kWait, as written
  std::uint64_t lost = 0;          // calls that the rank could not keep
  bool cut = false, ended = false;
};

struct Trace {
  std::vector<TraceSession> sessions;
  std::uint64_t damaged = 0;  // records that are none
  std::size_t partial = 0;    // bytes of a last record that is not whole
};

// Reads whatever is intact. Records before the first session count as damaged.
Trace ReadTrace(std::string_view bytes);

// What is missing in a session, as text for people, one entry each: "the rank ended without dtrun_finalize:
// ...".
std::vector<std::string> Missing(const TraceSession& session);

}  // namespace dtrun::contract
