// Feeds bytes to the control link's decoders as a peer with the key of the job could:
// nothing crashes, nothing larger than a limit is kept, and what decodes encodes to the same
// bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/protocol/hello.h"
#include "core/wire/coder.h"
#include "tests/fuzz/target.h"

namespace control_fuzz {

DTRUN_FUZZ_TARGET(control)(const std::uint8_t* data, std::size_t size) {
  using namespace dtrun;
  using namespace dtrun::protocol;
  wire::FrameReader frames(kMaxHelloBytes);
  frames.Append({reinterpret_cast<const char*>(data), size});
  for (;;) {
    const auto payload = frames.Next();
    if (!payload || !payload->has_value()) return 0;
    const std::string bytes(**payload);
    if (const auto hello = DecodeHello(bytes);
        hello && hello->protocol == kProtocol && Encode(*hello).substr(4) != bytes) {
      std::abort();
    }
    const auto welcome = DecodeAnswer(bytes);
    if (welcome && Encode(*welcome).substr(4) != bytes) std::abort();
    if (welcome || welcome.error().code == DTRUN_INVALID_ARGUMENT) continue;
    const Refusal refusal{welcome.error().code == DTRUN_FAILED_PRECONDITION, welcome.error().text};
    if (Encode(refusal).substr(4) != bytes) std::abort();
  }
}

}  // namespace control_fuzz
