// A rank of a random program with right messages, which nothing may accuse:
//
//   right_messages SEED
//
// All ranks take the same steps from the seed: messages between random ranks, with random tags (sometimes
// more than the flight recorder has rows), types and counts, zero included, awaited one by one or as a group;
// receives from any rank; communicators that are made and freed at once; sometimes a second init. Prints
// "right" at the end.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <random>
#include <stdexcept>
#include <vector>

#include "dtrun/dtrun.hpp"

namespace {

using Random = std::mt19937;

struct Message {
  int from = 0, to = 0;
  std::uint32_t tag = 0;
  std::int32_t dtype = DTRUN_FLOAT32;
  std::size_t count = 0;
  char value = 0;
};

void Must(dtrun_status status, const dtrun_error& error) {
  if (status != DTRUN_OK) throw std::runtime_error(error.message);
}

template <class Call>
void Must(Call call) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  Must(call(&error), error);
}

int Below(Random& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

std::vector<Message> Draw(Random& random, int size, int tags, bool any) {
  constexpr std::int32_t kTypes[] = {DTRUN_FLOAT32, DTRUN_FLOAT64, DTRUN_INT32, DTRUN_UINT8};
  std::vector<Message> messages(static_cast<std::size_t>(1 + Below(random, 6)));
  const auto shared = static_cast<std::uint32_t>(Below(random, tags));
  for (Message& message : messages) {
    message.from = Below(random, size);
    message.to = (message.from + 1 + Below(random, size - 1)) % size;
    message.tag = any ? shared : static_cast<std::uint32_t>(Below(random, tags));
    message.dtype = any ? DTRUN_INT32 : kTypes[Below(random, 4)];
    message.count = any ? 5 : static_cast<std::size_t>(Below(random, 12) == 0 ? 0 : Below(random, 300));
    message.value = static_cast<char>(Below(random, 100));
  }
  return messages;
}

// `any`: each rank receives from any rank.
void Exchange(dtrun_comm* comm, const std::vector<Message>& messages, bool group, bool any) {
  const int me = dtrun_comm_rank(comm);
  std::list<std::vector<char>> buffers;
  std::list<std::pair<const Message*, const std::vector<char>*>> received;
  std::vector<dtrun_work*> works;
  const auto start = [&](auto&& call) {
    dtrun_work* work = nullptr;
    Must([&](dtrun_error* error) { return call(group ? nullptr : &work, error); });
    if (work != nullptr) works.push_back(work);
  };
  if (group) Must([&](dtrun_error* error) { return dtrun_group_begin(comm, error); });
  for (const Message& message : messages) {
    const std::size_t bytes = message.count * dtrun_dtype_size(message.dtype);
    if (message.from == me) {
      void* const data = buffers.emplace_back(bytes + 1, message.value).data();
      start([&](dtrun_work** work, dtrun_error* error) {
        return dtrun_send(comm, data, message.count, message.dtype, message.to, message.tag, work, error);
      });
    }
    if (message.to == me) {
      std::vector<char>& buffer = buffers.emplace_back(bytes + 1, message.value + 1);
      start([&](dtrun_work** work, dtrun_error* error) {
        return any ? dtrun_recv_any(comm, buffer.data(), message.count, message.dtype, message.tag, nullptr,
                                    work, error)
                   : dtrun_recv(comm, buffer.data(), message.count, message.dtype, message.from, message.tag,
                                work, error);
      });
      if (!any) received.emplace_back(&message, &buffer);
    }
  }
  if (group) Must([&](dtrun_error* error) { return dtrun_group_end(comm, nullptr, error); });
  for (dtrun_work* const work : works) {
    Must([&](dtrun_error* error) { return dtrun_work_wait(work, -1, error); });
    dtrun_work_release(work);
  }
  for (const auto& [message, buffer] : received) {
    for (std::size_t i = 0; i + 1 < buffer->size(); ++i)
      if ((*buffer)[i] != message->value) throw std::runtime_error("a wrong value");
  }
}

void Barrier(dtrun_comm* comm) {
  Must([&](dtrun_error* error) { return dtrun_barrier(comm, nullptr, error); });
}

void Play(dtrun_comm* comm, Random& random, int steps) {
  const int size = dtrun_comm_size(comm);
  if (size < 2) return;
  const int tags = Below(random, 3) == 0 ? 60 : 1 + Below(random, 4);
  for (int step = 0; step < steps; ++step) {
    const bool any = Below(random, 4) == 0, group = Below(random, 3) == 0;
    Exchange(comm, Draw(random, size, tags, any), group, any);
    // Without it a rank that is ahead could send what another receives from any rank.
    if (any || Below(random, 8) == 0) Barrier(comm);
  }
}

void Main(unsigned seed) {
  Random random(seed);
  for (int turns = 1 + (Below(random, 3) == 0); turns > 0; --turns) {
    const dtrun::Session session;
    dtrun_comm* const world = dtrun_world();
    Play(world, random, 20 + Below(random, 40));
    for (int parts = Below(random, 5); parts > 0; --parts) {
      const int color = dtrun_rank() % (1 + Below(random, 2));
      Random of_part(static_cast<unsigned>(Below(random, 1 << 30) + color));
      dtrun_comm* part = nullptr;
      Must([&](dtrun_error* error) { return dtrun_comm_split(world, color, -dtrun_rank(), &part, error); });
      Play(part, of_part, 10);
      dtrun_comm_free(part);
    }
    Play(world, random, 10);
  }
}

}  // namespace

int main(int, char** argv) {
  try {
    Main(static_cast<unsigned>(std::atoi(argv[1])));
    std::puts("right");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
