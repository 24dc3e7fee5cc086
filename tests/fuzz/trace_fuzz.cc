// Any bytes as the trace of a rank: reading returns, and what it shows is JSON that trace viewers open.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/contract/trace.h"
#include "tests/fuzz/target.h"
#include "tools/dtrun/trace/run.h"

namespace trace_fuzz {

namespace contract = dtrun::contract;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

DTRUN_FUZZ_TARGET(trace)(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  contract::Trace trace = contract::ReadTrace(bytes);
  std::size_t calls = 0;
  std::vector<dtrun::trace::RankProcess> ranks;
  for (contract::TraceSession& session : trace.sessions) {
    calls += session.calls.size();
    static_cast<void>(contract::Missing(session));
    const int rank = static_cast<int>(ranks.size() % 3);  // so that calls of several ranks meet
    ranks.push_back({0, rank, "host", std::move(session)});
  }
  Require(calls * sizeof(contract::TraceRecord) <= size, "each call is a record");
  Require(trace.partial < sizeof(contract::TraceRecord), "only the last record may be a part of one");
  dtrun::trace::Timeline timeline;
  dtrun::trace::AddCalls(ranks, &timeline);
  Require(dtrun::ParseJson(timeline.document.Text(0)).is_object(), "a timeline is a JSON object");
  return 0;
}

}  // namespace trace_fuzz
