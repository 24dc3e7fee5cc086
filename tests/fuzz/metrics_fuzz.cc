// Any bytes as a request to metrics.listen: reading returns, and only a client with the token gets the page.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/metrics/http.h"
#include "tests/fuzz/target.h"

namespace metrics_fuzz {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

constexpr std::string_view kToken = "0123456789abcdef";

DTRUN_FUZZ_TARGET(metrics)(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto open = dtrun::metrics::ReadRequest(bytes, "");
  const auto closed = dtrun::metrics::ReadRequest(bytes, kToken);
  Require(closed.status != 200 || bytes.find(kToken) != bytes.npos, "the page needs the token");
  Require(open.status != 401, "without a token nothing is refused for it");
  Require((open.status == 0) == (closed.status == 0), "the token does not decide how much is read");
  Require(open.status != 0 || bytes.size() <= dtrun::metrics::kMostRequestBytes, "a request is bounded");
  return 0;
}

}  // namespace metrics_fuzz
