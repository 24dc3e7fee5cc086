// The ranks' part of a timeline: their calls on communicators.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "dtrun/abi/backend.h"
#include "dtrun/plugin/names.hpp"
#include "dtrun/plugin/signature.hpp"
#include "tools/dtrun/trace/run.h"

namespace dtrun::trace {
namespace {

using contract::TraceRecord;
using contract::TraceType;

constexpr int kFirstThreadRow = 10;
constexpr int kFirstLane = 10'000;  // operations in flight

// One collective, on all ranks of its communicator.
using Collective =
    std::tuple<int, std::size_t, std::string, std::uint64_t>;  // generation, session, name, number
struct Arrivals {
  int ranks = 0;
  int last = -1;  // rank of the job
  std::int64_t at = 0;
};

// By communicator: rows, and when each is free.
using Lanes = std::map<int, std::vector<std::pair<Row, std::int64_t>>>;

std::int64_t TimeOf(const RankProcess& process, const Clocks& clocks, std::int64_t monotonic) {
  return clocks.AtRoot(process.host, process.session.realtime + (monotonic - process.session.monotonic));
}

class Calls {
 public:
  Calls(const std::vector<RankProcess>& ranks, Timeline* to) : to_(*to) {
    std::map<std::pair<int, int>, std::size_t> sessions;
    for (const RankProcess& process : ranks)
      of_.emplace_back(&process, sessions[{process.generation, process.rank}]++);
    for (const auto& [process, session] : of_) {
      for (const TraceRecord& call : process->session.calls) Arrive(*process, session, call);
    }
  }

  void Add() {
    for (const auto& [process, session] : of_) AddProcess(*process, session);
  }

 private:
  static const contract::TraceCommunicator* CommunicatorOf(const RankProcess& process,
                                                           const TraceRecord& call) {
    const auto found = process.session.communicators.find(call.communicator);
    return found == process.session.communicators.end() ? nullptr : &found->second;
  }

  void Arrive(const RankProcess& process, std::size_t session, const TraceRecord& call) {
    const contract::TraceCommunicator* const comm = CommunicatorOf(process, call);
    if (call.type != TraceType::kCall || call.number == 0 || comm == nullptr) return;
    Arrivals& arrivals = arrivals_[{process.generation, session, comm->name, call.number}];
    const std::int64_t at = TimeOf(process, to_.clocks, call.start);
    ++arrivals.ranks;
    if (arrivals.last >= 0 && at <= arrivals.at) return;
    arrivals.last = process.rank;
    arrivals.at = at;
  }

  void AddProcess(const RankProcess& process, std::size_t session) {
    std::vector<const TraceRecord*> calls;
    for (const TraceRecord& call : process.session.calls) calls.push_back(&call);
    std::ranges::stable_sort(calls, {}, &TraceRecord::start);
    std::map<std::uint32_t, Row> threads;
    Lanes lanes;
    for (const TraceRecord* const call : calls) {
      const auto [thread, fresh] = threads.try_emplace(call->thread);
      if (fresh) thread->second = NewThread(process, call->thread);
      const contract::TraceCommunicator* const comm = CommunicatorOf(process, *call);
      const std::string on = comm == nullptr ? "a communicator without a name" : comm->name;
      const std::string name = sdk::OperationName(call->operation);
      const std::int64_t start = At(process, call->start), end = At(process, call->end);
      if (call->type == TraceType::kWait) {
        to_.document.Span(thread->second, "wait for " + name, "wait", start, end,
                          {{"communicator", on}, {"call", call->number}});
      } else if ((call->flags & contract::kTraceAsync) == 0) {
        to_.document.Span(thread->second, name, "collective", start, end,
                          Arguments(process, session, *call, comm));
      } else {
        to_.document.Instant(thread->second, "start " + name, "start", start,
                             {{"communicator", on}, {"call", call->number}});
        to_.document.Span(LaneFor(process, call->communicator, on, At(process, call->given), end, &lanes),
                          name, "collective", At(process, call->given), end,
                          Arguments(process, session, *call, comm));
      }
    }
    for (const std::string& what : contract::Missing(process.session)) {
      const std::int64_t last =
          calls.empty() ? At(process, process.session.monotonic) : At(process, calls.back()->end);
      if (!threads.empty())
        to_.document.Instant(threads.begin()->second, "trace is incomplete", "missing", last,
                             {{"why", what}});
    }
  }

  std::int64_t At(const RankProcess& process, std::int64_t monotonic) const {
    return TimeOf(process, to_.clocks, monotonic);
  }

  // `first`: of the rows of its kind.
  Row NewRow(const RankProcess& process, int first, const std::string& name) {
    const Row row{ProcessOf(process.rank), first + next_[{process.rank, first}]++};
    const std::string generation =
        process.generation == 0 ? "" : fmt::format(", generation {}", process.generation);
    to_.document.NameRow(row, name + generation, row.thread);
    return row;
  }

  Row NewThread(const RankProcess& process, std::uint32_t thread) {
    const auto name = process.session.threads.find(thread);
    const bool unnamed = name == process.session.threads.end();
    return NewRow(process, kFirstThreadRow,
                  fmt::format("calls of {} ({})", unnamed ? "thread" : name->second, thread));
  }

  // The first row of the communicator that is free, so that operations in flight at the same time do not
  // overlap.
  Row LaneFor(const RankProcess& process, int communicator, const std::string& name, std::int64_t start,
              std::int64_t end, Lanes* lanes) {
    auto& rows = (*lanes)[communicator];
    auto free = std::ranges::find_if(rows, [start](const auto& lane) { return lane.second <= start; });
    if (free == rows.end()) {
      free = rows.insert(rows.end(), {NewRow(process, kFirstLane, "in flight on " + name), end});
    }
    free->second = end;
    return free->first;
  }

  Json Arguments(const RankProcess& process, std::size_t session, const TraceRecord& call,
                 const contract::TraceCommunicator* comm) const {
    Json out = Json::object();
    const int size = comm == nullptr || comm->size < 1 ? 1 : comm->size;
    if (comm != nullptr) {
      out["communicator"] = comm->name;
      out["backend"] = comm->backend;
      out["ranks"] = size;
    }
    if (call.number != 0) out["call"] = call.number;
    if (call.dtype != 0) out["type"] = sdk::TypeName(call.dtype);
    if (call.reduce != 0) out["reduction"] = sdk::ReductionName(call.reduce);
    if (sdk::IsRooted(call.operation))
      out["root"] = call.peer;
    else if (call.operation == DTRUN_SEND || call.operation == DTRUN_RECV)
      out["peer"] = call.peer;
    if ((call.flags & contract::kTraceFailed) != 0) out["failed"] = true;
    if ((call.flags & contract::kTraceUnseen) != 0) out["end"] = "not seen: the handle was released before";
    if ((call.flags & contract::kTraceDevice) != 0) out["end"] = "seen by polling the stream";
    const double bytes = MessageBytes(call.operation, call.bytes, size),
                 factor = BusFactorOf(call.operation, size);
    // GB/s, to three decimals of MB/s.
    const auto rate = [&](std::int64_t nanoseconds, double times) {
      constexpr double kDigits = 1e6;
      return std::round(times * bytes / static_cast<double>(nanoseconds) * kDigits) / kDigits;
    };
    if (call.operation != DTRUN_BARRIER) out["bytes"] = static_cast<std::uint64_t>(bytes);
    if (bytes > 0 && call.end > call.given) {
      out["algbw_GB_s"] = rate(call.end - call.given, 1);
      out["busbw_GB_s"] = rate(call.end - call.given, factor);
    }
    out["given_to_backend_us"] = static_cast<double>(call.given - call.start) / 1000;
    if (call.number == 0 || comm == nullptr) return out;
    const auto arrivals = arrivals_.find({process.generation, session, comm->name, call.number});
    if (arrivals == arrivals_.end() || arrivals->second.ranks < size || size < 2) return out;
    const std::int64_t waited = std::max<std::int64_t>(0, arrivals->second.at - At(process, call.start));
    out["last_rank"] = arrivals->second.last;
    out["until_last_rank_us"] = static_cast<double>(waited) / 1000;
    const std::int64_t moved = At(process, call.end) - std::max(At(process, call.given), arrivals->second.at);
    if (bytes > 0 && moved > 0) out["busbw_after_last_rank_GB_s"] = rate(moved, factor);
    return out;
  }

  Timeline& to_;
  std::vector<std::pair<const RankProcess*, std::size_t>> of_;  // and which process of its rank it is
  std::map<Collective, Arrivals> arrivals_;
  std::map<std::pair<int, int>, int> next_;  // rows used, by rank and kind
};

}  // namespace

double MessageBytes(int operation, std::uint64_t bytes, int ranks) {
  switch (operation) {
    case DTRUN_ALLGATHER:
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_ALLTOALL:
    case DTRUN_GATHER:
    case DTRUN_SCATTER: return static_cast<double>(bytes) * ranks;
    default: return static_cast<double>(bytes);
  }
}

double BusFactorOf(int operation, int ranks) {
  const double n = ranks;
  switch (operation) {
    case DTRUN_ALLREDUCE: return 2 * (n - 1) / n;
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV:
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV:
    case DTRUN_ALLTOALL:
    case DTRUN_ALLTOALLV:
    case DTRUN_GATHER:
    case DTRUN_GATHERV:
    case DTRUN_SCATTER:
    case DTRUN_SCATTERV: return (n - 1) / n;
    default: return 1;
  }
}

void AddCalls(const std::vector<RankProcess>& ranks, Timeline* to) {
  std::set<std::string> hosts, unknown;
  for (const auto& [rank, host] : to->hosts) hosts.insert(host);
  for (const RankProcess& process : ranks) {
    if (hosts.size() > 1 && !to->clocks.Knows(process.host)) unknown.insert(process.host);
  }
  for (const std::string& host : unknown)
    to->missing.push_back(fmt::format("the clock of {} was not measured: its ranks may be shifted", host));
  Calls(ranks, to).Add();
}

}  // namespace dtrun::trace
