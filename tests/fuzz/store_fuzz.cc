// Feeds bytes to the store's decoder as a stranger on the socket could: nothing crashes,
// nothing larger than a limit is kept, and what decodes encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/store/protocol.h"
#include "tests/fuzz/target.h"

namespace store_fuzz {

DTRUN_FUZZ_TARGET(store)(const std::uint8_t* data, std::size_t size) {
  using namespace dtrun;
  using namespace dtrun::store;
  wire::FrameReader frames(kMaxFrameBytes);
  frames.Append({reinterpret_cast<const char*>(data), size});
  for (;;) {
    const auto payload = frames.Next();
    if (!payload || !payload->has_value()) return 0;
    const std::string bytes(**payload);
    if (const auto request = DecodeRequest(bytes); request && Encode(*request).substr(4) != bytes)
      std::abort();
    if (const auto reply = DecodeReply(bytes); reply && Encode(*reply).substr(4) != bytes) std::abort();
  }
}

}  // namespace store_fuzz
