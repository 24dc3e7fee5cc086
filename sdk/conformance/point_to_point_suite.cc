// Sends and receives: matching, order, crossing, waiting.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "repeated_memory.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

// In a buffer that receives a Ramp: the last byte of each element is another one, so that a byte lost at the
// end shows.
constexpr std::int32_t kNothing = -1;

std::vector<std::int32_t> Ramp(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), first);
  return data;
}

// Where they differ; "": nowhere.
std::string FirstDifference(const std::vector<std::int32_t>& got, const std::vector<std::int32_t>& sent) {
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (got[i] != sent[i])
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(sent[i]);
  }
  return {};
}

void EverySizeArrives(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    for (const std::size_t count : {0u, 1u, 1003u, 16'384u, 16'385u, 3'000'001u}) {
      const auto sent = Ramp(count, 7);
      std::vector<std::int32_t> got(count, kNothing);
      const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(sent.data(), count, DTRUN_INT32, 1, 0))
                                               : rank.Do(RecvOp(got.data(), count, DTRUN_INT32, 0, 0));
      EXPECT_TRUE(outcome.ok()) << outcome;
      if (rank.rank() == 1) {
        EXPECT_EQ(FirstDifference(got, sent), "") << "of " << count << " elements";
      }
    }
  });
}

// All send first and receive second, more than any socket buffer holds.
void CrossingSendsDoNotBlock(const Subject& subject) {
  subject.Play(3, [](Rank& rank) {
    constexpr std::size_t kCount = 4 << 20;
    const auto sent = Ramp(kCount, rank.rank());
    std::vector<std::vector<std::int32_t>> got(3, std::vector<std::int32_t>(kCount, kNothing));
    std::vector<std::unique_ptr<Pending>> pending;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank.rank())
        pending.push_back(rank.Start(SendOp(sent.data(), kCount, DTRUN_INT32, peer, 0)));
    }
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank.rank()) continue;
      auto& buffer = got[static_cast<std::size_t>(peer)];
      pending.push_back(rank.Start(RecvOp(buffer.data(), kCount, DTRUN_INT32, peer, 0)));
    }
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank.rank()) continue;
      EXPECT_EQ(FirstDifference(got[static_cast<std::size_t>(peer)], Ramp(kCount, peer)), "")
          << "from rank " << peer;
    }
  });
}

void TagsTellMessagesApart(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    std::vector<std::uint32_t> tags = {0, 0xffff'ffffu};
    for (int bit = 0; bit < 32; ++bit) tags.push_back(std::uint32_t{1} << bit);
    auto data = Ramp(tags.size(), 10);
    std::vector<std::unique_ptr<Pending>> pending;
    if (rank.rank() == 0) {
      for (std::size_t i = 0; i < tags.size(); ++i)
        pending.push_back(rank.Start(SendOp(&data[i], 1, DTRUN_INT32, 1, tags[i])));
    } else {
      std::fill(data.begin(), data.end(), 0);
      for (std::size_t i = tags.size(); i-- > 0;)
        pending.push_back(rank.Start(RecvOp(&data[i], 1, DTRUN_INT32, 0, tags[i])));
    }
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    EXPECT_EQ(data, Ramp(tags.size(), 10)) << "tags 0, 0xffffffff, and each with one bit";
  });
}

void MessagesOfOneTagKeepTheirOrder(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    constexpr std::int32_t kMessages = 200;
    auto data = Ramp(kMessages, 0);
    if (rank.rank() == 1) std::fill(data.begin(), data.end(), -1);
    std::vector<std::unique_ptr<Pending>> pending;
    for (auto& value : data) {
      pending.push_back(rank.Start(rank.rank() == 0 ? SendOp(&value, 1, DTRUN_INT32, 1, 5)
                                                    : RecvOp(&value, 1, DTRUN_INT32, 0, 5)));
    }
    // The last first: completion order is the transport's own affair.
    for (auto one = pending.rbegin(); one != pending.rend(); ++one) EXPECT_TRUE((*one)->Wait().ok());
    EXPECT_EQ(data, Ramp(kMessages, 0));
  });
}

// Small ones behind large ones, as for a transport with another way for each; received late, then early.
void MessagesKeepTheirOrderWhateverTheirSize(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    for (const bool early : {false, true}) {
      std::vector<std::vector<std::int32_t>> data;
      for (const std::size_t count : {300'000u, 2u, 20'000u, 1u, 0u, 300'000u, 3u}) {
        const auto first = static_cast<std::int32_t>(data.size());
        data.push_back(rank.rank() == 0 ? Ramp(count, first) : std::vector<std::int32_t>(count, kNothing));
      }
      const std::string round = early ? "early" : "late";
      if (rank.rank() == (early ? 0 : 1)) rank.Await("started " + round);
      std::vector<std::unique_ptr<Pending>> pending;
      for (auto& one : data)
        pending.push_back(rank.Start(rank.rank() == 0 ? SendOp(one.data(), one.size(), DTRUN_INT32, 1, 0)
                                                      : RecvOp(one.data(), one.size(), DTRUN_INT32, 0, 0)));
      if (rank.rank() == (early ? 1 : 0)) rank.Tell("started " + round);
      for (const auto& one : pending) {
        ASSERT_NE(one, nullptr);
        const Outcome outcome = one->Wait();
        ASSERT_TRUE(outcome.ok()) << outcome;
      }
      for (std::size_t i = 0; i < data.size(); ++i)
        EXPECT_EQ(FirstDifference(data[i], Ramp(data[i].size(), static_cast<std::int32_t>(i))), "")
            << "in message " << i << " of one tag, received " << round;
    }
  });
}

// A receive that nothing answers yet holds up neither collectives nor other messages.
void WaitingReceivesHoldUpNothing(const Subject& subject) {
  const bool collectives = Has(subject.Caps().ops, DTRUN_BARRIER);
  subject.Play(2, [collectives](Rank& rank) {
    const auto barrier = [&](const char* word) {
      if (!collectives) return rank.Meet(word);
      EXPECT_TRUE(rank.Barrier().ok());
    };
    std::int32_t early = rank.rank() == 0 ? 0 : 42;
    std::int32_t late = rank.rank() == 0 ? 0 : 43;
    std::unique_ptr<Pending> first;
    if (rank.rank() == 0) first = rank.Start(RecvOp(&late, 1, DTRUN_INT32, 1, 1));
    barrier("first");
    const Outcome second = rank.rank() == 0 ? rank.Do(RecvOp(&early, 1, DTRUN_INT32, 1, 2))
                                            : rank.Do(SendOp(&early, 1, DTRUN_INT32, 0, 2));
    EXPECT_TRUE(second.ok()) << second;
    if (rank.rank() == 0) {
      bool done = true;
      EXPECT_TRUE(first->Test(&done).ok());
      EXPECT_FALSE(done);
      EXPECT_EQ(first->Wait(nanoseconds(0)).code, DTRUN_PENDING);
    }
    barrier("second");
    const Outcome third = rank.rank() == 0 ? first->Poll() : rank.Do(SendOp(&late, 1, DTRUN_INT32, 0, 1));
    EXPECT_TRUE(third.ok()) << third;
    EXPECT_EQ(early, 42);
    EXPECT_EQ(late, 43);
  });
}

// Receives that wait while collectives run, with the tags that a backend may have for its own messages.
void CollectivesTakeNoMessages(const Subject& subject) {
  if (!Has(subject.Caps().ops, DTRUN_ALLREDUCE)) GTEST_SKIP() << "the backend has no allreduce";
  subject.Play(2, [](Rank& rank) {
    std::vector<std::uint32_t> tags;
    for (std::uint32_t near = 0; near < 12; ++near)
      for (const std::uint32_t base : {0x0U, 0x7fff'fff8U, 0xffff'fff4U, 0x4000'0000U, 0xc000'0000U})
        tags.push_back(base + near);
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    const int peer = 1 - rank.rank();
    std::vector<std::int32_t> got(tags.size(), -1), sent = Ramp(tags.size(), rank.rank());
    std::vector<std::unique_ptr<Pending>> pending;
    for (std::size_t i = 0; i < tags.size(); ++i) {
      dtrun_op op = RecvOp(&got[i], 1, DTRUN_INT32, peer, tags[i]);
      op.timeout_ns = nanoseconds(kPatience / 3).count();  // its release waits for it, also after a failure
      pending.push_back(rank.Start(op));
    }
    for (int call = 0; call < 8; ++call) {
      std::vector<std::int32_t> data(1000, 1 + rank.rank());
      const Outcome outcome =
          rank.Do(AllreduceOp(data.data(), data.data(), data.size(), DTRUN_INT32, DTRUN_SUM));
      ASSERT_TRUE(outcome.ok()) << "beside receives that wait: " << outcome;
      EXPECT_EQ(data, std::vector<std::int32_t>(1000, 3));
    }
    for (std::size_t i = 0; i < tags.size(); ++i) {
      bool done = true;
      EXPECT_TRUE(pending[i]->Test(&done).ok());
      ASSERT_FALSE(done) << "a collective took or gave a message with tag " << tags[i];
    }
    rank.Meet("looked");
    for (std::size_t i = 0; i < tags.size(); ++i)
      EXPECT_TRUE(rank.Do(SendOp(&sent[i], 1, DTRUN_INT32, peer, tags[i])).ok());
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    EXPECT_EQ(got, Ramp(tags.size(), peer));
  });
}

void SeveralThreadsMayWaitForAMessage(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    std::int32_t value = rank.rank() == 1 ? 9 : 0;
    if (rank.rank() == 1) {
      rank.Meet("waited");
      EXPECT_TRUE(rank.Do(SendOp(&value, 1, DTRUN_INT32, 0, 0)).ok());
      return;
    }
    const auto pending = rank.Start(RecvOp(&value, 1, DTRUN_INT32, 1, 0));
    std::vector<std::thread> threads;
    threads.emplace_back([&] { EXPECT_EQ(pending->Wait(std::chrono::milliseconds(1)).code, DTRUN_PENDING); });
    threads.emplace_back([&] { EXPECT_EQ(pending->Wait(nanoseconds(0)).code, DTRUN_PENDING); });
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    threads.emplace_back([&] { EXPECT_TRUE(pending->Wait().ok()); });
    threads.emplace_back([&] { EXPECT_TRUE(pending->Wait().ok()); });
    threads.emplace_back([&] { EXPECT_TRUE(pending->Poll().ok()); });
    rank.Meet("waited");
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(value, 9);
  });
}

bool FromAnyone(const Subject& subject) { return (subject.Caps().features & DTRUN_CAP_ANY_SOURCE) != 0; }

// Each sender's messages arrive once and in their order; a directed receive takes only its own.
// In a communicator of the ranks of another one, in another order, messages of other sizes.
void MessagesOfAnyoneInAPartAreReceived(const Subject& subject) {
  if (!FromAnyone(subject)) GTEST_SKIP() << "the backend cannot receive from anyone";
  subject.Play(3, [](Rank& world) {
    const auto part = world.Further("part", {2, 0, 1});
    ASSERT_NE(part, nullptr);
    std::uint32_t tag = 7;
    for (const std::size_t count : {1, 1003, 20'000, 400'003}) {
      ++tag;
      if (part->rank() != 0) {
        const auto values = Ramp(count, part->rank());
        EXPECT_TRUE(part->Do(SendOp(values.data(), count, DTRUN_INT32, 0, tag)).ok());
        continue;
      }
      for (int message = 0; message < 2; ++message) {
        std::vector<std::int32_t> values(count);
        std::int32_t source = -7;
        dtrun_op op = RecvOp(values.data(), count, DTRUN_INT32, DTRUN_ANY_SOURCE, tag);
        op.source = &source;
        const Outcome outcome = part->Do(op);
        ASSERT_TRUE(outcome.ok()) << outcome;
        EXPECT_EQ(source, values[0]) << "of a message of " << count << " elements in a part (M5)";
        EXPECT_EQ(values, Ramp(count, values[0]));
      }
    }
  });
}

void MessagesOfAnyoneAreReceived(const Subject& subject) {
  if (!FromAnyone(subject)) GTEST_SKIP() << "the backend cannot receive from anyone";
  subject.Play(4, [](Rank& rank) {
    constexpr std::int32_t kMessages = 25;
    if (rank.rank() != 0) {
      for (std::int32_t i = 0; i < kMessages; ++i) {
        const auto values = Ramp(100, rank.rank() * 1000 + i);
        EXPECT_TRUE(rank.Do(SendOp(values.data(), values.size(), DTRUN_INT32, 0, 7)).ok());
      }
      const std::int32_t last = -rank.rank();
      EXPECT_TRUE(rank.Do(SendOp(&last, 1, DTRUN_INT32, 0, 8)).ok());
      return;
    }
    std::vector<std::int32_t> next(4, 0);
    for (std::int32_t i = 0; i < 3 * kMessages; ++i) {
      std::vector<std::int32_t> values(100);
      std::int32_t source = -7;
      dtrun_op op = RecvOp(values.data(), values.size(), DTRUN_INT32, DTRUN_ANY_SOURCE, 7);
      op.source = i % 5 == 0 ? nullptr : &source;
      const Outcome outcome = rank.Do(op);
      ASSERT_TRUE(outcome.ok()) << outcome;
      const std::int32_t from = values[0] / 1000;
      if (op.source != nullptr) {
        EXPECT_EQ(source, from);
      }
      ASSERT_TRUE(from >= 1 && from <= 3) << values[0];
      EXPECT_EQ(values, Ramp(100, from * 1000 + next[static_cast<std::size_t>(from)]++));
    }
    EXPECT_EQ(next, (std::vector<std::int32_t>{0, kMessages, kMessages, kMessages}));
    for (const int from : {3, 1, 2}) {
      std::int32_t value = 0;
      EXPECT_TRUE(rank.Do(RecvOp(&value, 1, DTRUN_INT32, from, 8)).ok());
      EXPECT_EQ(value, -from);
    }
  });
}

// Posted before anything is sent, all at once.
void EarlyReceivesFromAnyoneAreServed(const Subject& subject) {
  if (!FromAnyone(subject)) GTEST_SKIP() << "the backend cannot receive from anyone";
  subject.Play(3, [](Rank& rank) {
    if (rank.rank() != 0) {
      rank.Await("posted");
      const std::int32_t value = rank.rank();
      EXPECT_TRUE(rank.Do(SendOp(&value, 1, DTRUN_INT32, 0, 1)).ok());
      return;
    }
    std::vector<std::int32_t> values(2);
    std::vector<std::int32_t> sources(2, -7);
    std::vector<std::unique_ptr<Pending>> pending;
    for (const std::size_t i : {0u, 1u}) {
      dtrun_op op = RecvOp(&values[i], 1, DTRUN_INT32, DTRUN_ANY_SOURCE, 1);
      op.source = &sources[i];
      pending.push_back(rank.Start(op));
    }
    bool done = true;
    EXPECT_TRUE(pending[0]->Test(&done).ok());
    EXPECT_FALSE(done);
    rank.Tell("posted");
    for (const auto& one : pending) EXPECT_TRUE(one->Wait().ok());
    EXPECT_EQ(values, sources);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, (std::vector<std::int32_t>{1, 2}));
  });
}

// A message that has arrived does not time out, however late the receive is polled.
void ACompletedMessageDoesNotTimeOutLater(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    constexpr auto kLimit = std::chrono::seconds(2);
    std::int32_t value = rank.rank() == 0 ? 5 : 0;
    dtrun_op op =
        rank.rank() == 0 ? SendOp(&value, 1, DTRUN_INT32, 1, 0) : RecvOp(&value, 1, DTRUN_INT32, 0, 0);
    op.timeout_ns = nanoseconds(kLimit).count();
    const auto limit = std::chrono::steady_clock::now() + kLimit + std::chrono::milliseconds(100);
    const auto pending = rank.Start(op);
    rank.Meet("started");
    std::this_thread::sleep_until(limit);  // the point of the case is that this time passes
    const Outcome outcome = pending->Wait();
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(value, 5);
    rank.Meet("looked");
  });
}

void MoreThanTwoGibibytesArrive(const Subject& subject) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer looks at every byte, which takes minutes";
#endif
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 4097;
  const std::uint64_t most = subject.Caps().max_bytes;
  if (most != 0 && most < kBytes) GTEST_SKIP() << "the backend moves at most " << most << " bytes";
  subject.Play(2, [](Rank& rank) {
    const RepeatedMemory memory(kBytes);
    const auto content = [](std::size_t i) { return static_cast<unsigned char>(i * 7 + i / 251); };
    if (rank.rank() == 0) memory.Fill(content);
    const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(memory.data(), kBytes, DTRUN_UINT8, 1, 0))
                                             : rank.Do(RecvOp(memory.data(), kBytes, DTRUN_UINT8, 0, 0));
    rank.Meet("arrived");  // a busy machine may need longer than a rank that leaves has to hand it over (B21)
    ASSERT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(memory.Wrong(content), 0u) << "bytes on rank " << rank.rank();
  });
}

}  // namespace

void AddPointToPointCases(const BackendUnderTest& backend) {
  AddCase("Messages", "OfEverySizeArrive", "M1, M4, B14", backend, EverySizeArrives);
  AddCase("Messages", "OfMoreThanTwoGibibytesArrive", "B13", backend, MoreThanTwoGibibytesArrive);
  AddCase("Messages", "ThatCrossDoNotBlock", "M3, B6", backend, CrossingSendsDoNotBlock);
  AddCase("Messages", "AreNotTakenByCollectives", "M1, M2", backend, CollectivesTakeNoMessages);
  AddCase("Messages", "AreToldApartByTag", "M1", backend, TagsTellMessagesApart);
  AddCase("Messages", "OfOneTagKeepTheirOrder", "M1", backend, MessagesOfOneTagKeepTheirOrder);
  AddCase("Messages", "OfOneTagKeepTheirOrderWhateverTheirSize", "M1", backend,
          MessagesKeepTheirOrderWhateverTheirSize);
  AddCase("Messages", "ThatAreLateHoldUpNothing", "M2, B6, B8", backend, WaitingReceivesHoldUpNothing);
  AddCase("Messages", "MayBeWaitedForBySeveralThreads", "T4, M2", backend, SeveralThreadsMayWaitForAMessage);
  AddCase("Messages", "OfAnyoneAreReceived", "M5", backend, MessagesOfAnyoneAreReceived);
  AddCase("Messages", "OfAnyoneInAPartAreReceived", "M5, B18", backend, MessagesOfAnyoneInAPartAreReceived);
  AddCase("Messages", "OfAnyoneMayBeAwaitedEarly", "M5", backend, EarlyReceivesFromAnyoneAreServed);
  AddCase("Messages", "ThatAreCompleteDoNotTimeOutLater", "M6, B7", backend,
          ACompletedMessageDoesNotTimeOutLater);
}

}  // namespace dtrun::conformance
