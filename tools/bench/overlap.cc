// overlap BYTES ROUNDS: a rank of a dtrun job; see overlap.h. Started by tools/bench/overlap.py.
#include "tools/bench/overlap.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "dtrun/dtrun.hpp"

namespace {

// A call of dtrun.h with its own error object.
template <class F>
void Do(F&& call) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  if (call(&error) != DTRUN_OK) throw std::runtime_error(error.message);
}

void Run(std::size_t bytes, int rounds) {
  const dtrun::Session session;
  dtrun_comm* const world = dtrun_world();
  std::vector<float> send(bytes / sizeof(float), 1), recv(send.size());
  dtrun_work* work = nullptr;
  dtrun::overlap::Transport transport;
  transport.rank = dtrun_rank();
  transport.start = [&] {
    Do([&](dtrun_error* e) {
      return dtrun_allreduce(world, send.data(), recv.data(), send.size(), DTRUN_FLOAT32, DTRUN_SUM, &work,
                             e);
    });
  };
  transport.wait = [&] {
    Do([&](dtrun_error* e) { return dtrun_work_wait(work, -1, e); });
    dtrun_work_release(work);
  };
  transport.barrier = [&] { Do([&](dtrun_error* e) { return dtrun_barrier(world, nullptr, e); }); };
  transport.slowest = [&](double value) {
    Do([&](dtrun_error* e) {
      return dtrun_allreduce(world, &value, &value, 1, DTRUN_FLOAT64, DTRUN_MAX, nullptr, e);
    });
    return value;
  };
  dtrun::overlap::Measure(transport, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: overlap BYTES ROUNDS, as a rank of dtrun\n", stderr);
    return 2;
  }
  try {
    Run(std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "overlap: %s\n", failure.what());
    return 1;
  }
}
