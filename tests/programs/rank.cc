// A rank for the behaviour tests: joins, runs allreduces, and dies where it is told to.
//
//   rank                      allreduce a few numbers and print the sum
//   rank loop                 allreduce until the job is ended; prints "looping" once
//   rank die PLACE RANK HOW   PLACE: before-init, in-allreduce, at-exit
//                             HOW: a signal number, or exit=CODE
//   rank differ WHAT [HOW]    the last rank makes its tenth call differ: reduce, kind, count,
//                             dtype, root, order, memory or connect, or every rank (roots); then all go on
//                             until an error ends them, as fast as they can or with 100 calls a second
//                             (HOW: slowly), or all leave at once (HOW: leave)
//                             memory: of the fake accelerator, the first call on it;
//                             memory-connected: after all ranks have connected theirs;
//                             connect: it connects the fake accelerator
//   rank mixed KIND           rank 0 sends from memory of that kind, host or device, and the last
//                             rank receives into the other; the fake accelerator is the device
//   rank mismatch WHAT [HOW]  rank 0 sends 8 floats with tag 7, which the last rank receives wrongly: dtype,
//                             count or tag; then all go to a barrier, at once or (HOW: slowly) after a while,
//                             or leave at once (HOW: leave)
//   rank ring                 passes its number on to the next rank, by a message
//   rank leave-group          rank 1 receives in a group what no rank sends, and throws there; the others go
//   on rank receive [polls]      rank 1 receives what no rank sends, and looks at it between naps; rank 0
//   pauses if
//                             it polls; the others go on to a barrier
//   rank again                joins, leaves and joins again, with other calls
//   rank crash                a thread of the program crashes during an allreduce
//   rank skip                 the last rank leaves out its tenth call and waits
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dtrun/dtrun.hpp"

namespace {

struct Death {
  std::string place;
  int rank = -1;
  std::string how;

  void MaybeHere(const char* here, int rank_here) const {
    if (place != here || rank != rank_here) return;
    std::printf("dying %s\n", here);
    std::fflush(stdout);
    if (how.rfind("exit=", 0) == 0) _exit(std::atoi(how.c_str() + 5));
    std::raise(std::atoi(how.c_str()));
  }
};

// Rank 1 waits for a message of rank 0, which sleeps.
void Poll(const dtrun::Communicator& world) {
  float data = 0;
  if (world.rank() == 0) ::pause();
  if (world.rank() != 1) return;
  dtrun::Work work = world.recv_async(&data, 1, 0, 7);
  while (!work.test()) ::usleep(1000);
}

// The tenth call of this rank; `odd`: it is the one that is wrong.
void TenthCall(const dtrun::Communicator& world, const std::string& what, bool odd) {
  std::vector<double> data(1 << 14, 1);
  auto* const floats = reinterpret_cast<float*>(data.data());
  if (what == "root") return world.broadcast(floats, 8, odd ? 1 : 0);
  if (what == "roots") return world.broadcast(floats, 8, world.rank());
  if (what == "order") {
    if (odd) world.barrier();
    world.allreduce(floats, 8);
    if (!odd) world.barrier();
    return;
  }
  if (!odd) return world.allreduce(floats, 8);
  if (what == "reduce") return world.allreduce(floats, 8, dtrun::Reduce::max);
  if (what == "kind") return world.broadcast(floats, 8, 0);
  if (what == "count") return world.allreduce(floats, 9);
  if (what == "dtype") return world.allreduce(data.data(), 8);
  std::fprintf(stderr, "rank: unknown difference '%s'\n", what.c_str());
  std::exit(2);
}

// The tenth call, on memory of the fake accelerator where it is the odd one.
void TenthCallOnMemory(const dtrun::Communicator& world, const std::string& what, bool odd) {
  const int device = world.rank() % 4;
  std::vector<float> host(8, 1);
  if (what == "connect" && odd) return world.connect(DTRUN_DEVICE_OTHER, device);
  if (what == "memory-connected") {
    world.connect(DTRUN_DEVICE_OTHER, device);
    if (!odd) return world.allreduce(host.data(), host.size());
    const dtrun::Memory<float> memory(world, host.size(), DTRUN_DEVICE_OTHER, device);
    const dtrun_stream stream = dtrun::stream_of(DTRUN_DEVICE_OTHER, device, nullptr);
    world.on(stream).allreduce_async(memory.data(), memory.size()).wait();
    return;
  }
  if (!odd) return world.allreduce(host.data(), host.size());
  // dtrun does not check the kind of memory before the ranks are connected.
  world.on(dtrun::stream_of(DTRUN_DEVICE_OTHER, device, nullptr)).allreduce(host.data(), host.size());
}

// Ends by an exception, or with `how` "leave" perhaps not at all.
void Differ(const dtrun::Communicator& world, const std::string& what, const std::string& how) {
  std::vector<float> data(8, 1);
  for (int call = 1; call < 10; ++call) world.allreduce(data.data(), data.size());
  const bool odd = world.rank() == world.size() - 1;
  if (what == "connect" || what.rfind("memory", 0) == 0) {
    TenthCallOnMemory(world, what, odd);
  } else {
    TenthCall(world, what, odd);
  }
  while (how != "leave") {
    world.allreduce(data.data(), data.size());
    if (how == "slowly") usleep(10'000);
  }
}

void Skip(const dtrun::Communicator& world) {
  std::vector<float> data(8, 1);
  for (int call = 1; call < 10; ++call) world.allreduce(data.data(), data.size());
  if (world.rank() == world.size() - 1) pause();
  world.allreduce(data.data(), data.size());
}

void Mixed(const dtrun::Communicator& world, bool sends_from_device) {
  const int device = world.rank() % 4, last = world.size() - 1;
  world.connect(DTRUN_DEVICE_OTHER, device);
  const dtrun::Memory<float> memory(world, 8, DTRUN_DEVICE_OTHER, device);
  const auto on_device = world.on(dtrun::stream_of(DTRUN_DEVICE_OTHER, device, nullptr));
  std::vector<float> host(8, 1);
  if (world.rank() == 0) {
    if (sends_from_device) on_device.send_async(memory.data(), memory.size(), last, 7).wait();
    if (!sends_from_device) world.send(host.data(), host.size(), last, 7);
  } else if (world.rank() == last) {
    if (sends_from_device) world.recv(host.data(), host.size(), 0, 7);
    if (!sends_from_device) on_device.recv_async(memory.data(), memory.size(), 0, 7).wait();
  }
  world.barrier();
}

void Mismatch(const dtrun::Communicator& world, const std::string& what, const std::string& how) {
  const int last = world.size() - 1;
  std::vector<float> data(8, 1);
  std::vector<std::int32_t> numbers(8);
  if (world.rank() == 0) world.send(data.data(), data.size(), last, 7);
  if (world.rank() == last && what == "dtype") world.recv(numbers.data(), numbers.size(), 0, 7);
  if (world.rank() == last && what == "count") world.recv(data.data(), 4, 0, 7);
  if (world.rank() == last && what == "tag") world.recv(data.data(), data.size(), 0, 8);
  if (how == "slowly") sleep(2);
  if (how != "leave") world.barrier();
}

void Ring(const dtrun::Communicator& world) {
  const int mine = world.rank();
  int got = -1;
  dtrun::Work sent = world.send_async(&mine, 1, (mine + 1) % world.size());
  world.recv(&got, 1, (mine + world.size() - 1) % world.size());
  sent.wait();
  std::printf("rank %d of %d over %s: got %d\n", mine, world.size(), world.backend().c_str(), got);
  world.barrier();
}

// Joins twice, with other calls on communicators of the same names.
void Again() {
  std::vector<float> data(8, 1);
  {
    const dtrun::Session session;
    const auto one = dtrun::SubCommunicator::split(session.world(), 0);
    const auto two = dtrun::SubCommunicator::split(session.world(), 0);
    two.get().broadcast(data.data(), 1, 1);
  }
  const dtrun::Session session;
  { const auto one = dtrun::SubCommunicator::split(session.world(), 0); }
  const auto two = dtrun::SubCommunicator::split(session.world(), 0);
  two.get().allreduce(data.data(), data.size());
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "sum";
  Death death;
  if (mode == "die" && argc == 5) death = {argv[2], std::atoi(argv[3]), argv[4]};
  const char* rank_text = std::getenv("DTRUN_RANK");
  const int rank = rank_text == nullptr ? 0 : std::atoi(rank_text);

  if (mode == "again") Again();
  if (mode == "again") return 0;
  death.MaybeHere("before-init", rank);
  {
    dtrun::Session session;
    const dtrun::Communicator world = session.world();
    if (mode == "differ" && argc >= 3) Differ(world, argv[2], argc > 3 ? argv[3] : "");
    if (mode == "skip") Skip(world);
    if (mode == "leave-group" && world.rank() == 1) {
      float data = 0;
      const dtrun::Group group(world);
      world.recv(&data, 1, 0, 7);
      throw std::runtime_error("bad batch");
    }
    if (mode == "mixed" && argc >= 3) Mixed(world, std::string(argv[2]) == "device");
    if (mode == "mismatch" && argc >= 3) {
      Mismatch(world, argv[2], argc > 3 ? argv[3] : "");
      return 0;
    }
    if (mode == "crash") {
      std::thread([] {
        usleep(300'000);
        static char* volatile nowhere = reinterpret_cast<char*>(8);
        *nowhere = 1;
      }).detach();
    }
    if (mode == "ring") {
      Ring(world);
      return 0;
    }
    std::vector<float> data(1024, static_cast<float>(world.rank() + 1));
    world.allreduce(data.data(), data.size());
    std::printf("rank %d of %d over %s: sum %g\n", world.rank(), world.size(), world.backend().c_str(),
                static_cast<double>(data[0]));
    std::fflush(stdout);
    if (mode == "leave" && rank == world.size() - 1) return 0;
    if (mode == "late") {  // the others have done their part, and leave, while rank 0 waits for the last one
      if (rank == world.size() - 1) sleep(3);
      world.reduce(data.data(), data.data() + 1, 1, 0);
      return 0;
    }
    if (mode == "exit" && rank == world.size() - 1) std::exit(5);
    for (long step = 0; mode == "loop" || death.place == "in-allreduce"; ++step) {
      if (step == 20) death.MaybeHere("in-allreduce", rank);
      world.allreduce(data.data(), data.size(), dtrun::Reduce::max);
      if (step == 0) {
        std::printf("looping\n");
        std::fflush(stdout);
      }
    }
    if (mode == "receive" && argc > 2) Poll(world);
    if (mode == "receive" && rank == 1) world.recv(data.data(), data.size(), 0, 7);
    world.barrier();
  }
  death.MaybeHere("at-exit", rank);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "rank failed: %s\n", failure.what());
    return 3;
  }
}
