#include "tools/dtrun/trace/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace dtrun::trace {
namespace {

// The members of an object without its braces.
std::string MembersOf(const Json& object) {
  std::string text = JsonLine(object);
  return text.size() < 2 ? "" : text.substr(1, text.size() - 2);
}

// Microseconds, exactly.
std::string Micro(std::int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const auto whole = static_cast<std::uint64_t>(negative ? -nanoseconds : nanoseconds);
  return fmt::format("{}{}.{:03}", negative ? "-" : "", whole / 1000, whole % 1000);
}

}  // namespace

void Document::Meta(const char* kind, Row row, const Json& arguments) {
  names_.insert_or_assign({row, kind}, fmt::format("\"name\":\"{}\",\"args\":{}", kind, JsonLine(arguments)));
}

void Document::NameProcess(int process, const std::string& name, int order) {
  Meta("process_name", {process, 0}, {{"name", name}});
  Meta("process_sort_index", {process, 0}, {{"sort_index", order}});
}

void Document::NameRow(Row row, const std::string& name, int order) {
  Meta("thread_name", row, {{"name", name}});
  Meta("thread_sort_index", row, {{"sort_index", order}});
}

void Document::Span(Row row, std::string_view name, std::string_view category, std::int64_t start,
                    std::int64_t end, const Json& arguments) {
  Foreign(row, 'X', start, std::max<std::int64_t>(0, end - start),
          {{"name", name}, {"cat", category}, {"args", arguments}});
}

void Document::Instant(Row row, std::string_view name, std::string_view category, std::int64_t at,
                       const Json& arguments) {
  Foreign(row, 'i', at, -1, {{"name", name}, {"cat", category}, {"s", "t"}, {"args", arguments}});
}

void Document::Foreign(Row row, char phase, std::int64_t at, std::int64_t duration, const Json& members) {
  events_.push_back({row, phase, at, duration, MembersOf(members)});
}

std::string Document::Text(std::int64_t base) {
  // Of events that begin together the longer one contains the others.
  std::ranges::stable_sort(events_, [](const Event& a, const Event& b) {
    if (a.row != b.row) return a.row < b.row;
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  std::string text = fmt::format(
      "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":{},\n\"otherData\":{},"
      "\n\"traceEvents\":[",
      base, JsonLine(about));
  const char* between = "\n";
  for (const auto& [key, members] : names_) {
    const Row row = key.first;
    fmt::format_to(std::back_inserter(text), "{}{{\"ph\":\"M\",\"ts\":0,\"pid\":{},\"tid\":{},{}}}", between,
                   row.process, row.thread, members);
    between = ",\n";
  }
  for (const Event& event : events_) {
    fmt::format_to(std::back_inserter(text), "{}{{\"ph\":\"{}\",\"ts\":{},", between, event.phase,
                   Micro(event.start - base));
    if (event.duration >= 0) fmt::format_to(std::back_inserter(text), "\"dur\":{},", Micro(event.duration));
    fmt::format_to(std::back_inserter(text), "\"pid\":{},\"tid\":{}{}{}}}", event.row.process,
                   event.row.thread, event.members.empty() ? "" : ",", event.members);
    between = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace dtrun::trace
