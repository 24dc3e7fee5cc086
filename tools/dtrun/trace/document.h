// A timeline in the Trace Event Format, as Perfetto and Chrome open it: rows in processes, and events on
// rows.
//
// Times are nanoseconds since 1970 on the clock of the root's host. Value; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.h"

namespace dtrun::trace {

// A row, as process and thread of the format.
struct Row {
  int process = 0, thread = 0;
  auto operator<=>(const Row&) const = default;
};

class Document {
 public:
  // Processes and rows are shown in the order of `order`. A later name replaces an earlier one.
  void NameProcess(int process, const std::string& name, int order);
  void NameRow(Row row, const std::string& name, int order);

  void Span(Row row, std::string_view name, std::string_view category, std::int64_t start, std::int64_t end,
            const Json& arguments = Json::object());
  void Instant(Row row, std::string_view name, std::string_view category, std::int64_t at,
               const Json& arguments = Json::object());
  // An event of another program: `members` are those besides ph, pid, tid, ts and dur. `duration` below 0: it
  // has none.
  void Foreign(Row row, char phase, std::int64_t at, std::int64_t duration, const Json& members);

  // Members of `otherData`.
  Json about = Json::object();
  std::size_t size() const { return events_.size(); }
  // The JSON text. `base`: what its times count from.
  std::string Text(std::int64_t base);

 private:
  struct Event {
    Row row;
    char phase = 'X';
    std::int64_t start = 0, duration = -1;
    std::string members;  // JSON: "name":...
  };
  void Meta(const char* kind, Row row, const Json& arguments);

  std::vector<Event> events_;
  std::map<std::pair<Row, std::string>, std::string> names_;  // by row and kind
};

}  // namespace dtrun::trace
