// A rank that trains on its fake device through dtrun, for tests/test_device_training.py: for each of SEEDS
// it compares the weights with those of the host, bit by bit, and prints what differs, the host's waits and
// the route.
//
//   fake_train SEEDS [averages|optimizer]      the second removes the waits of that stream
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sdk/torch/fake/fake_device.h"
#include "sdk/torch/fake/training.h"

int main(int argc, char** argv) {
  using namespace dtrun::torch::testing;  // NOLINT(google-build-using-namespace)
  namespace fake = dtrun::fake;
  try {
    const dtrun::Session session;
    const dtrun::Communicator world = session.world();
    const auto ranks = std::make_shared<dtrun::torch::CommunicatorCollectives>(world);
    const c10::Device device = fake::device(world.rank() % fake::kDevices);
    const std::vector<Tensor> expected = Train<DeviceMlp>(ranks, ::torch::kCPU).weights;
    if (argc > 2) {
      fake::ignore(std::strcmp(argv[2], "averages") == 0 ? fake::Ignored::waits_of_made_streams
                                                         : fake::Ignored::waits_of_default_streams);
    }
    std::uint64_t different = 0, waits = 0;
    const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      fake::set_delays({seed, 400, 0});
      const Trained trained = Train<DeviceMlp>(ranks, device);
      different += Equal(trained.weights, expected) ? 0 : 1;
      waits += trained.host_waits;
    }
    std::printf("rank %d: %llu of %llu seeds differ, the host waited %llu times, over %s\n", world.rank(),
                static_cast<unsigned long long>(different), static_cast<unsigned long long>(seeds),
                static_cast<unsigned long long>(waits), world.route(DTRUN_DEVICE_OTHER).c_str());
    std::fflush(stdout);
    fake::settle();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fake_train: %s\n", error.what());
    return 1;
  }
}
