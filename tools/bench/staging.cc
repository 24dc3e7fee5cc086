// staging BYTES ROUNDS: a rank of a dtrun job, on the fake accelerator. Started by tools/bench/staging.py.
//
// Each round times an allreduce in host memory, the same in pieces of 4 MiB, the copies for staging (out and
// in at the same time), and an allreduce in the accelerator's memory, each on its slowest rank. Rank 0 prints
// "route NAME" first, then "staging WIRE PIECES COPY STAGED" in seconds. Main thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "dtrun/dtrun.hpp"
#include "sdk/fake/accelerator.h"

namespace {

namespace fake = dtrun::fake;

struct Release {
  void operator()(void* memory) const { fake::release(memory); }
};
using Memory = std::unique_ptr<void, Release>;

Memory Allocated(int device, std::uint64_t bytes) {
  Memory memory(fake::allocate(device, bytes));
  std::memset(memory.get(), 0, bytes);
  return memory;
}

double Timed(const dtrun::Communicator& world, const std::function<void()>& work) {
  world.barrier();
  const auto begin = std::chrono::steady_clock::now();
  work();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  world.allreduce(&seconds, 1, dtrun::Reduce::max);
  return seconds;
}

void Run(std::uint64_t bytes, int rounds) {
  constexpr std::uint64_t kPiece = 4 << 20;
  const dtrun::Session session;
  const dtrun::Communicator world = session.world();
  const int device = dtrun_local_rank() % fake::kDevices;
  const std::uint64_t count = bytes / sizeof(float);
  const Memory host = Allocated(-1, bytes), pieces = Allocated(-1, 2 * kPiece),
               there = Allocated(device, bytes);
  auto* const of_host = static_cast<float*>(host.get());
  auto* const of_device = static_cast<float*>(there.get());

  world.connect(DTRUN_DEVICE_OTHER, device);
  fake::Stream& stream = fake::default_stream(device);
  const dtrun_stream on = dtrun::stream_of(DTRUN_DEVICE_OTHER, device, nullptr);
  fake::Stream* const out = fake::make_stream(device);
  fake::Stream* const in = fake::make_stream(device);
  const auto copy = [&] {
    char* const piece = static_cast<char*>(pieces.get());
    for (std::uint64_t at = 0; at < bytes; at += kPiece) {
      const std::uint64_t size = std::min(kPiece, bytes - at);
      char* const memory = static_cast<char*>(there.get()) + at;
      out->post([=] { std::memcpy(piece, memory, size); });
      in->post([=] { std::memcpy(memory, piece + kPiece, size); });
    }
    out->wait_on_host();
    in->wait_on_host();
  };
  const auto wire = [&] { world.allreduce(of_host, count, dtrun::Reduce::sum); };
  const auto in_pieces = [&] {
    std::vector<dtrun::Work> works;
    for (std::uint64_t at = 0; at < count; at += kPiece / sizeof(float))
      works.push_back(world.allreduce_async(of_host + at, std::min(kPiece / sizeof(float), count - at)));
    for (dtrun::Work& work : works) work.wait();
  };
  const auto staged = [&] {
    world.on(on).allreduce(of_device, count, dtrun::Reduce::sum);
    stream.wait_on_host();
  };
  if (world.rank() == 0)
    std::printf("route %s\n", dtrun_comm_route(dtrun_world(), DTRUN_DEVICE_OTHER, nullptr));
  for (int round = -1; round < rounds; ++round) {  // the first one connects and allocates memory
    const double times[] = {Timed(world, wire), Timed(world, in_pieces), Timed(world, copy),
                            Timed(world, staged)};
    if (round >= 0 && world.rank() == 0)
      std::printf("staging %.6f %.6f %.6f %.6f\n", times[0], times[1], times[2], times[3]);
  }
  fake::destroy_stream(out);
  fake::destroy_stream(in);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: staging BYTES ROUNDS, as a rank of dtrun\n", stderr);
    return 2;
  }
  try {
    Run(std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "staging: %s\n", failure.what());
    return 1;
  }
}
