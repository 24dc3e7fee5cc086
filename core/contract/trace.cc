#include "core/contract/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "dtrun/plugin/names.hpp"

namespace dtrun::contract {
namespace {

constexpr std::size_t kMostNames = 1 << 16;
constexpr std::size_t kMostNameBytes = 4096;
constexpr std::int64_t kAnHour = std::int64_t{3600} * 1'000'000'000;
// Their product fits into 64 bits.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 43;  // of one call of a rank: 8 TiB
constexpr std::uint32_t kMostRanks = 1 << 20;

void Append(std::string& name, const TraceRecord& record) {
  if (name.size() < kMostNameBytes) name += record.Text();
}

bool IsCall(const TraceRecord& r) {
  // A session shorter than 292 years: sums and differences of its times do not overflow.
  const bool timed = r.start >= 0 && r.given >= r.start && r.end >= r.given && r.end < INT64_MAX / 4;
  return timed && r.bytes <= kMostBytes && r.operation > 0 && r.operation < sdk::kOperationEnd &&
         r.dtype < sdk::kTypeEnd;
}

void AddName(TraceSession& session, const TraceRecord& record) {
  if (record.type == TraceType::kThread) {
    if (session.threads.size() < kMostNames) Append(session.threads[record.thread], record);
    return;
  }
  if (session.communicators.size() >= kMostNames) return;
  TraceCommunicator& comm = session.communicators[record.communicator];
  comm.rank = record.peer;
  comm.size = static_cast<int>(std::min(record.thread, kMostRanks));
  Append(comm.name, record);
}

}  // namespace

void TraceRecord::SetText(std::string_view part) {
  char text[kTextBytes] = {};
  part.copy(text, sizeof text);
  std::memcpy(reinterpret_cast<char*>(this) + offsetof(TraceRecord, bytes), text, sizeof text);
}

std::string TraceRecord::Text() const {
  char text[kTextBytes];
  std::memcpy(text, reinterpret_cast<const char*>(this) + offsetof(TraceRecord, bytes), sizeof text);
  return {text, ::strnlen(text, sizeof text)};
}

Trace ReadTrace(std::string_view bytes) {
  Trace trace;
  trace.partial = bytes.size() % sizeof(TraceRecord);
  for (std::size_t at = 0; at + sizeof(TraceRecord) <= bytes.size(); at += sizeof(TraceRecord)) {
    TraceRecord record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (record.type == TraceType::kBegin) {
      const bool whole = record.thread == kTraceMagic && record.bytes == kTraceVersion && record.start >= 0 &&
                         record.start < INT64_MAX / 4 && record.given >= kAnHour &&
                         record.given < INT64_MAX / 4;
      if (!whole) {
        ++trace.damaged;
        continue;
      }
      TraceSession& session = trace.sessions.emplace_back();
      session.pid = record.number;
      session.generation = static_cast<std::uint64_t>(record.end);
      session.monotonic = record.start;
      session.realtime = record.given;
      continue;
    }
    if (trace.sessions.empty()) {
      ++trace.damaged;
      continue;
    }
    TraceSession& session = trace.sessions.back();
    switch (record.type) {
      case TraceType::kCommunicator:
      case TraceType::kThread: AddName(session, record); break;
      case TraceType::kCall:
      case TraceType::kWait:
        if (IsCall(record))
          session.calls.push_back(record);
        else
          ++trace.damaged;
        break;
      case TraceType::kLost: session.lost += record.number & 0xffffffffffff; break;
      case TraceType::kCut: session.cut = true; break;
      case TraceType::kEnd: session.ended = true; break;
      default: ++trace.damaged;
    }
  }
  for (TraceSession& session : trace.sessions) {
    for (auto& [id, comm] : session.communicators) {
      const std::size_t line = comm.name.find('\n');
      if (line == std::string::npos) continue;
      comm.backend = comm.name.substr(line + 1);
      comm.name.resize(line);
    }
  }
  return trace;
}

std::vector<std::string> Missing(const TraceSession& session) {
  std::vector<std::string> missing;
  if (session.lost > 0)
    missing.push_back(fmt::format("{} calls were not kept: the rank called faster than its trace was written",
                                  session.lost));
  if (session.cut) missing.push_back("the trace reached its limit, trace.size, and has no calls after that");
  if (!session.ended && !session.cut)
    missing.push_back(
        fmt::format("the trace stops without its end, as when a rank is killed or still runs: calls of the "
                    "last {} ms may be missing",
                    kTracePeriodMs));
  return missing;
}

}  // namespace dtrun::contract
