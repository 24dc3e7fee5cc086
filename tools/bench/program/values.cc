#include "tools/bench/program/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace dtrun::bench {
namespace {

// The values for index 0, 1 and 2 mod 3.
using Period = std::array<int, 3>;

Period Contribution(int rank) {
  const int weight = rank == 0 || rank % 2 == 1 ? 2 : 1;
  return {rank % 3 * weight, (rank + 1) % 3 * weight, (rank + 2) % 3 * weight};
}

Period Sum(int ranks) {
  Period sum{};
  for (int rank = 0; rank < ranks; ++rank) {
    const Period one = Contribution(rank);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

// A part of a receive buffer: elements [at, at + count) hold the indices from `first` on.
struct Segment {
  std::uint64_t at, count, first;
  Period values;
};

std::vector<Segment> Expected(const Call& call, int rank, int ranks) {
  const std::uint64_t count = call.shape.count;
  const std::uint64_t own = static_cast<std::uint64_t>(rank) * count;
  std::vector<Segment> out;
  switch (call.operation) {
    case Operation::kAllreduce: return {{0, count, 0, Sum(ranks)}};
    case Operation::kReduce:
      if (rank == kRoot) out.push_back({0, count, 0, Sum(ranks)});
      return out;
    case Operation::kBroadcast: return {{0, count, 0, Contribution(kRoot)}};
    case Operation::kReduceScatter: return {{0, count, own, Sum(ranks)}};
    case Operation::kSendrecv: return {{0, count, 0, Contribution((rank + ranks - 1) % ranks)}};
    case Operation::kCopy: return {{0, count, 0, Contribution(rank)}};
    case Operation::kBarrier: return out;
    case Operation::kAllgather:
    case Operation::kAlltoall: break;
  }
  for (int from = 0; from < ranks; ++from) {
    out.push_back({static_cast<std::uint64_t>(from) * count, count,
                   call.operation == Operation::kAlltoall ? own : 0, Contribution(from)});
  }
  return out;
}

// A few KiB of the pattern, beginning with index `first`.
std::vector<char> Tile(const Element& element, std::uint64_t first, const Period& values) {
  constexpr std::uint64_t kTileElements = 1536;  // a multiple of the period
  std::vector<char> tile(kTileElements * element.size);
  for (std::uint64_t i = 0; i < kTileElements; ++i)
    Encode(element, values[(first + i) % 3], &tile[i * element.size]);
  return tile;
}

void Write(void* to, const Element& element, std::uint64_t count, const Period& values) {
  const std::vector<char> tile = Tile(element, 0, values);
  auto* place = static_cast<char*>(to);
  for (std::uint64_t left = count * element.size; left > 0;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(left, tile.size());
    std::memcpy(place, tile.data(), bytes);
    place += bytes;
    left -= bytes;
  }
}

// Sums of many ranks do not fit a 16-bit float's fraction and are rounded.
bool Near(const Element& element, double got, double expected) {
  if (element.form != Form::kFloat16 && element.form != Form::kBfloat16) return false;
  return std::abs(got - expected) <= expected / 64;
}

Status CheckElements(const Call& call, const Segment& segment, std::uint64_t begin, std::uint64_t end) {
  const auto* recv = static_cast<const char*>(call.recv);
  const std::uint32_t size = call.element.size;
  for (std::uint64_t i = begin; i < end; ++i) {
    char right[8];
    const int expected = segment.values[(segment.first + i) % 3];
    Encode(call.element, expected, right);
    const char* place = recv + (segment.at + i) * size;
    if (std::memcmp(place, right, size) == 0) continue;
    const double got = Decode(call.element, place);
    if (Near(call.element, got, expected)) continue;
    return Error{DTRUN_INTERNAL, fmt::format("element {} is {}, expected {}", segment.at + i, got,
                                             Decode(call.element, right))};
  }
  return {};
}

Status CheckSegment(const Call& call, const Segment& segment) {
  const std::vector<char> tile = Tile(call.element, segment.first, segment.values);
  const std::uint64_t step = tile.size() / call.element.size;
  const auto* recv = static_cast<const char*>(call.recv) + segment.at * call.element.size;
  for (std::uint64_t begin = 0; begin < segment.count; begin += step) {
    const std::uint64_t end = std::min(segment.count, begin + step);
    if (std::memcmp(recv + begin * call.element.size, tile.data(), (end - begin) * call.element.size) == 0)
      continue;
    if (Status checked = CheckElements(call, segment, begin, end); !checked) return checked;
  }
  return {};
}

}  // namespace

void Fill(const Call& call, int rank) {
  if (call.operation == Operation::kBarrier) return;
  Write(call.send, call.element, call.shape.send, Contribution(rank));
  std::memset(call.recv, 0x7f, call.shape.recv * call.element.size);
  if (call.operation == Operation::kBroadcast && rank == kRoot)
    Write(call.recv, call.element, call.shape.recv, Contribution(rank));
}

Status Check(const Call& call, int rank, int ranks) {
  for (const Segment& segment : Expected(call, rank, ranks)) {
    if (Status checked = CheckSegment(call, segment); !checked) return checked;
  }
  return {};
}

}  // namespace dtrun::bench
