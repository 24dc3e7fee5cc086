// The ucx plugin: everything a backend must do is inherited; what is its own stands here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"

namespace dtrun::conformance {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

const bool kRegistered = RegisterBackendSuite({.plugin = UCX_PLUGIN_FILE});

Subject UcxWith(const std::map<std::string, std::string>& options) {
  return Subject({UCX_PLUGIN_FILE, options});
}

TEST(UcxLaunch, ReportsTheLibraryAndTheTransports) {
  const Subject::Launch launch = UcxWith({}).LaunchInfo(1);
  EXPECT_THAT(launch.facts.at("library"), StartsWith("UCX 1."));
  EXPECT_THAT(launch.facts.at("library_path"), HasSubstr("libucp.so.0"));
  EXPECT_THAT(launch.facts.at("interface"), HasSubstr("posix/memory"));
  EXPECT_THAT(launch.facts.at("rdma"), ::testing::AnyOf(StartsWith("no: "), "yes"));
  EXPECT_THAT(launch.env, IsEmpty());
}

TEST(UcxLaunch, TellsRanksWhatTheUserChose) {
  EXPECT_THAT(UcxWith({{"transports", "tcp,self"}, {"devices", "lo"}}).LaunchInfo(2).env,
              UnorderedElementsAre(Pair("UCX_TLS", "tcp,self"), Pair("UCX_NET_DEVICES", "lo")));
}

TEST(UcxLaunch, TellsRanksToLeavePeersAlone) {
  const Subject::Launch launch = UcxWith({{"p2p", "off"}, {"transports", "^xpmem"}}).LaunchInfo(2);
  EXPECT_THAT(launch.env, UnorderedElementsAre(Pair("UCX_TLS", "^xpmem,cuda_ipc"), Pair("DTRUN_P2P", "off")));
  EXPECT_THAT(launch.facts.at("p2p"), StartsWith("off"));
}

// As Debian's is built.
TEST(UcxDevices, AreStagedWhereUcxHasNoTransportForThem) {
  const Subject subject = UcxWith({});
  if (subject.Caps().device_kinds != 1u << DTRUN_DEVICE_HOST)
    GTEST_SKIP() << "this UCX moves memory of devices";
  EXPECT_EQ(subject.Caps().features & DTRUN_CAP_NO_STREAM, 0u);
  EXPECT_THAT(subject.LaunchInfo(1).facts.at("device"),
              StartsWith("staged, because this UCX has no transport"));
}

TEST(UcxTransports, WorkWithoutPeers) {
  UcxWith({{"p2p", "off"}}).Play(2, [](Rank& rank) {
    EXPECT_TRUE(rank.Barrier().ok());
    EXPECT_THAT(rank.Snapshot(), ::testing::Contains(HasSubstr("/memory")));
  });
}

TEST(UcxOptions, RefuseWhatUcxOnlyWarnsOf) {
  EXPECT_THAT(
      [] {
        UcxWith({{"transports", "tpc"}});
      },
      ThrowsMessage<std::runtime_error>(
          AllOf(HasSubstr("'tpc'"), HasSubstr("this host has"), HasSubstr("tcp"))));
  EXPECT_THAT(
      [] {
        UcxWith({{"devices", "eth77"}});
      },
      ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("'eth77'"), HasSubstr("lo"))));
}

// What carries a message is what the options left: each of them alone moves everything.
TEST(UcxTransports, MoveLargeAndSmallMessagesAlone) {
  for (const char* transports : {"tcp,self", "posix,self", "sysv,self", "posix,cma,self"}) {
    SCOPED_TRACE(transports);
    UcxWith({{"transports", transports}}).Play(3, [](Rank& rank) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
        std::vector<float> data(count, static_cast<float>(rank.rank() + 1));
        const Outcome outcome =
            rank.Do(AllreduceOp(data.data(), data.data(), count, DTRUN_FLOAT32, DTRUN_SUM));
        EXPECT_TRUE(outcome.ok()) << outcome;
        EXPECT_EQ(data, std::vector<float>(count, 6));
      }
    });
  }
}

TEST(UcxTransports, AreNamedAsUcxChoseThem) {
  for (const auto& [transports, route] :
       {std::pair{"tcp,self", "over tcp/lo"}, std::pair{"posix,self", "over posix/memory"}}) {
    UcxWith({{"transports", transports}}).Play(2, [route = std::string(route)](Rank& rank) {
      EXPECT_TRUE(rank.Barrier().ok());
      EXPECT_THAT(rank.Snapshot(), ::testing::Contains(HasSubstr(route)));
    });
  }
}

// The thread that enqueues drives; the engine's own thread takes what others leave.
TEST(UcxRequests, MarkedAsBlockingMixWithOthers) {
  UcxWith({}).Play(2, [](Rank& rank) {
    for (int call = 0; call < 200; ++call) {
      std::vector<std::int32_t> waited(100, 1);
      std::vector<std::int32_t> queued(100, 2);
      dtrun_op op = AllreduceOp(waited.data(), waited.data(), 100, DTRUN_INT32, DTRUN_SUM);
      std::unique_ptr<Pending> pending;
      if (call % 3 == 0)
        pending = rank.Start(AllreduceOp(queued.data(), queued.data(), 100, DTRUN_INT32, DTRUN_SUM));
      op.flags |= DTRUN_OP_BLOCKING;
      EXPECT_TRUE(rank.Do(op).ok());
      EXPECT_EQ(waited, std::vector<std::int32_t>(100, 2));
      if (!pending) continue;
      EXPECT_TRUE(pending->Wait().ok());
      EXPECT_EQ(queued, std::vector<std::int32_t>(100, 4));
    }
  });
}

TEST(UcxRequests, MarkedAsBlockingAreFinishedAlsoWhenNobodyWaits) {
  UcxWith({}).Play(2, [](Rank& rank) {
    std::int32_t value = 1;
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_INT32, DTRUN_SUM);
    op.flags |= DTRUN_OP_BLOCKING;
    EXPECT_TRUE(rank.Start(op)->Poll().ok());
    EXPECT_EQ(value, 2);
  });
}

// The recorder of core finds out what differs; a call that took the other's bytes would end before.
TEST(UcxRequests, OfUnlikeCallsDoNotMeet) {
  UcxWith({}).Play(2, [](Rank& rank) {
    std::int32_t value = rank.rank();
    dtrun_op op = AllreduceOp(&value, &value, 1, DTRUN_INT32, DTRUN_SUM);
    if (rank.rank() == 1) op.kind = DTRUN_BROADCAST, op.root = 0, op.reduce = 0;
    op.timeout_ns = 300'000'000;
    EXPECT_FALSE(rank.Do(op).ok());
    EXPECT_EQ(value, rank.rank());
  });
}

TEST(UcxMessages, FromAnyoneNameTheirSender) {
  UcxWith({}).Play(3, [](Rank& rank) {
    std::int32_t value = rank.rank();
    if (rank.rank() != 0) {
      EXPECT_TRUE(rank.Do(SendOp(&value, 1, DTRUN_INT32, 0, 9)).ok());
      return;
    }
    int senders = 0;
    for (int i = 0; i < 2; ++i) {
      std::int32_t source = -1;
      dtrun_op op = RecvOp(&value, 1, DTRUN_INT32, DTRUN_ANY_SOURCE, 9);
      op.source = &source;
      EXPECT_TRUE(rank.Do(op).ok());
      EXPECT_EQ(source, value);
      senders += source;
    }
    EXPECT_EQ(senders, 3);
  });
}

TEST(UcxMessages, ReachTheirOwnSender) {
  for (const char* transports : {"all", "tcp,self", "tcp"}) {
    UcxWith({{"transports", transports}}).Play(2, [](Rank& rank) {
      const std::vector<std::int32_t> sent(100'000, rank.rank() + 5);
      std::vector<std::int32_t> got(sent.size());
      const auto recv = rank.Start(RecvOp(got.data(), got.size(), DTRUN_INT32, rank.rank(), 1));
      EXPECT_TRUE(rank.Do(SendOp(sent.data(), sent.size(), DTRUN_INT32, rank.rank(), 1)).ok());
      EXPECT_TRUE(recv->Wait().ok());
      EXPECT_EQ(got, sent);
    });
  }
}

TEST(UcxMessages, OfAnotherSizeNameBothSizes) {
  UcxWith({}).Play(2, [](Rank& rank) {
    std::vector<std::int32_t> data(10);
    if (rank.rank() == 0) {
      EXPECT_TRUE(rank.Do(SendOp(data.data(), 5, DTRUN_INT32, 1, 0)).ok());
      return;
    }
    const Outcome outcome = rank.Do(RecvOp(data.data(), 10, DTRUN_INT32, 0, 0));
    EXPECT_EQ(outcome.code, DTRUN_INVALID_ARGUMENT);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("20 bytes"), HasSubstr("40 were expected")));
  });
}

}  // namespace
}  // namespace dtrun::conformance
