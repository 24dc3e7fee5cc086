// Feeds requests to Horovod's rendezvous store as a stranger could: nothing crashes, an answer is one
// that HTTP has, and what was put is there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/store/horovod_server.h"
#include "tests/fuzz/target.h"

namespace horovod_fuzz {

// Lines of "METHOD TARGET BODY".
DTRUN_FUZZ_TARGET(horovod)(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  dtrun::store::HorovodTable table({{"global", 2}, {"local_node0", 1}});
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t first = std::min(line.find(' '), line.size());
    const std::size_t second = std::min(line.find(' ', std::min(first + 1, line.size())), line.size());
    const std::string_view method = line.substr(0, first);
    const std::string_view target = first < second ? line.substr(first + 1, second - first - 1) : "";
    const std::string_view body = second < line.size() ? line.substr(second + 1) : "";
    const auto answer = table.Take(method, target, body);
    if (answer.status < 200 || answer.status > 599) std::abort();
    if (method == "PUT" && answer.status == 200 && table.Take("GET", target, "").body != body) std::abort();
  }
  return 0;
}

}  // namespace horovod_fuzz
