// Bytes per second of the hot kernels of every variant, float32 and the 16-bit types in turn.
//
//   kernels_bench [bytes of one buffer ...]      (default 65536 16777216)
//
// Per type: the median of interleaved rounds, so that other work on the machine touches all alike.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "variant.h"

namespace dtrun::kernels {
namespace {

constexpr int kRounds = 31;
struct Case {
  const char* name;
  int dtype;
  int reduce;
  int sources;
  bool in_place;
  Stores stores;
};
constexpr Case kCases[] = {
    {"float32 sum 2", DTRUN_FLOAT32, DTRUN_SUM, 2, false, Stores::kCached},
    {"bfloat16 sum 2", DTRUN_BFLOAT16, DTRUN_SUM, 2, false, Stores::kCached},
    {"float16 sum 2", DTRUN_FLOAT16, DTRUN_SUM, 2, false, Stores::kCached},
    {"float32 sum 2 in place", DTRUN_FLOAT32, DTRUN_SUM, 2, true, Stores::kCached},
    {"bfloat16 sum 2 in place", DTRUN_BFLOAT16, DTRUN_SUM, 2, true, Stores::kCached},
    {"float16 sum 2 in place", DTRUN_FLOAT16, DTRUN_SUM, 2, true, Stores::kCached},
    {"float32 sum 2 streaming", DTRUN_FLOAT32, DTRUN_SUM, 2, false, Stores::kStreaming},
    {"bfloat16 sum 2 streaming", DTRUN_BFLOAT16, DTRUN_SUM, 2, false, Stores::kStreaming},
    {"float32 avg 2", DTRUN_FLOAT32, DTRUN_AVG, 2, false, Stores::kCached},
    {"bfloat16 avg 2", DTRUN_BFLOAT16, DTRUN_AVG, 2, false, Stores::kCached},
    {"float32 max 2", DTRUN_FLOAT32, DTRUN_MAX, 2, false, Stores::kCached},
    {"bfloat16 max 2", DTRUN_BFLOAT16, DTRUN_MAX, 2, false, Stores::kCached},
    {"float32 sum 4", DTRUN_FLOAT32, DTRUN_SUM, 4, false, Stores::kCached},
    {"bfloat16 sum 4", DTRUN_BFLOAT16, DTRUN_SUM, 4, false, Stores::kCached},
    {"float32 sum 8", DTRUN_FLOAT32, DTRUN_SUM, 8, false, Stores::kCached},
    {"bfloat16 sum 8", DTRUN_BFLOAT16, DTRUN_SUM, 8, false, Stores::kCached},
    {"int32 sum 2", DTRUN_INT32, DTRUN_SUM, 2, false, Stores::kCached},
    {"float64 sum 2", DTRUN_FLOAT64, DTRUN_SUM, 2, false, Stores::kCached},
};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Run(const Variant& variant, std::size_t bytes) {
  constexpr int kBuffers = 9;
  void* buffers[kBuffers];
  // Different distances from a page's start, as buffers of a program have.
  std::vector<unsigned char> memory(kBuffers * (bytes + 8192));
  for (int b = 0; b < kBuffers; ++b) {
    void* start = memory.data() + static_cast<std::size_t>(b) * (bytes + 4096 + 320);
    std::size_t space = bytes + 64;
    buffers[b] = std::align(64, bytes, start, space);
  }
  const int repeats = static_cast<int>(std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes));
  std::vector<double> times[std::size(kCases)];
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t c = 0; c < std::size(kCases); ++c) {
      const Case& one = kCases[c];
      const Reduce reduce =
          variant.combine[one.dtype][one.reduce].reduce[one.stores == Stores::kStreaming ? 1 : 0];
      const std::size_t count = bytes / ElementBytes(one.dtype);
      void* const out = one.in_place ? buffers[0] : buffers[kBuffers - 1];
      reduce(out, buffers, one.sources, count);
      const double start = Seconds();
      for (int r = 0; r < repeats; ++r) reduce(out, buffers, one.sources, count);
      times[c].push_back((Seconds() - start) / repeats);
    }
  }
  std::printf("%s, %zu bytes\n", variant.name, bytes);
  for (std::size_t c = 0; c < std::size(kCases); ++c) {
    std::sort(times[c].begin(), times[c].end());
    std::printf("  %-26s %8.2f GB/s median %8.2f best\n", kCases[c].name,
                static_cast<double>(bytes) / times[c][kRounds / 2] / 1e9,
                static_cast<double>(bytes) / times[c][0] / 1e9);
  }
}

}  // namespace
}  // namespace dtrun::kernels

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {65536, 16 << 20};
  int count = 0;
  const dtrun::kernels::Variant* const* variants = dtrun::kernels::UsableVariants(&count);
  for (const std::size_t bytes : sizes) {
    for (int v = 0; v < count; ++v) dtrun::kernels::Run(*variants[v], bytes);
  }
}
