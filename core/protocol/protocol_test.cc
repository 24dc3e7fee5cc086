#include "core/protocol/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>

namespace dtrun::protocol {
namespace {

using ::testing::HasSubstr;

// The root's side of a channel to the host of ranks 2 and 3, the second of three hosts in a world of six.
class ProtocolTest : public ::testing::Test {
 protected:
  void Join() { MustTake(Introduction{"node1", "machine", "0.0=0,1", {}}); }
  void BePrepared() {
    Join();
    protocol_.Note(ToAgent(Preparation()));
    MustTake(Prepared{-1, {{2, 4000}}, "/s", "/r"});
  }
  void Run() {
    BePrepared();
    protocol_.Note(Start{});
    MustTake(Started{{11, 12}});
  }
  void BeSurveyed() {
    Join();
    protocol_.Note(Survey{1, "auto", "key"});
    MustTake(Offer());
    protocol_.Note(CheckConnectivity{{{0, {Card()}}, {2, {Card(), Card()}}}, true, std::chrono::seconds(1)});
  }

  static Prepare Preparation() {
    Prepare prepare;
    prepare.world_size = 6;
    for (const int rank : {2, 3}) {
      plan::Process process;
      process.host = 1;
      process.rank = rank;
      process.local_rank = rank - 2;
      process.argv = {"/bin/true"};
      prepare.processes.push_back(process);
    }
    prepare.task_ranks = {2};
    prepare.mpi = {pmi::Kind::kPmi1, "job-1.0", {{"node0", 0, 2}, {"node1", 2, 2}, {"node2", 4, 2}}, 1};
    return prepare;
  }
  static network::Candidate Card() {
    network::Candidate card;
    card.interface = "eth0";
    card.address = {asio::ip::make_address("10.0.0.2"), 24};
    return card;
  }
  static Surveyed Offer() {
    Surveyed surveyed;
    surveyed.offer.candidates = {Card()};
    return surveyed;
  }
  static Called CallsOf(int rank) {
    contract::Window window;
    window.communicator = 7;
    window.name = "world";
    window.size = 6;
    window.members = {{rank, rank}};
    window.idle = contract::Idle{1, 0};
    window.calls = {{1, 99, {}}};
    return {{window}};
  }
  static ToRoot Try(int from, int peer, int to) { return ConnectivityChecked{{{from, peer, to, "", {}}}}; }

  // As a receiver takes it: decoded, then checked.
  Result<bool> Take(const ToRoot& message) {
    const std::string bytes = Encode(message);
    const Result<ToRoot> decoded = DecodeToRoot(bytes);
    return decoded ? protocol_.Check(*decoded) : Result<bool>(decoded.error());
  }
  Result<bool> Take(const ToAgent& message) {
    const std::string bytes = Encode(message);
    const Result<ToAgent> decoded = DecodeToAgent(bytes);
    return decoded ? protocol_.Check(*decoded) : Result<bool>(decoded.error());
  }
  template <class Message>
  std::string ErrorOf(const Message& message) {
    const Result<bool> taken = Take(message);
    return taken ? "" : taken.error().text;
  }
  std::string ErrorOfRoot(const ToRoot& message) { return ErrorOf(message); }
  std::string ErrorOfAgent(const ToAgent& message) { return ErrorOf(message); }
  void MustTake(const ToRoot& message) {
    const Result<bool> taken = Take(message);
    ASSERT_TRUE(taken) << taken.error().text;
    ASSERT_TRUE(*taken);
  }
  bool Late(const ToRoot& message) {
    const Result<bool> taken = Take(message);
    return taken && !*taken;
  }

  Protocol protocol_;
};

TEST_F(ProtocolTest, HearsNothingBeforeTheIntroductionAndNoSecondOne) {
  EXPECT_THAT(ErrorOfRoot(Said{"hello"}), HasSubstr("it sent Said before it said what its host is"));
  EXPECT_THAT(ErrorOfRoot(ClientOpened{1}), HasSubstr("ClientOpened before"));
  EXPECT_THAT(ErrorOfRoot(Output{0, output::Stream::kOut, "x"}), HasSubstr("Output before"));
  Join();
  EXPECT_THAT(ErrorOfRoot(Introduction{}), HasSubstr("it sent Introduction while no ranks were asked for"));
}

TEST_F(ProtocolTest, HearsAnswersOnlyToWhatWasAsked) {
  Join();
  EXPECT_THAT(ErrorOfRoot(Prepared{}), HasSubstr("nothing of the kind is due"));
  EXPECT_THAT(ErrorOfRoot(Started{}), HasSubstr("nothing of the kind is due"));
  EXPECT_THAT(ErrorOfRoot(Gone{}), HasSubstr("nothing of the kind is due"));
  EXPECT_THAT(ErrorOfRoot(Refused{{DTRUN_SYSTEM, "no"}}), HasSubstr("no request is open"));
  for (const ToRoot& answer :
       {ToRoot(Surveyed{}), ToRoot(ConnectivityChecked{}), ToRoot(Measured{}), ToRoot(PreflightAnswered{})})
    EXPECT_THAT(ErrorOf(answer), HasSubstr("it was not requested"));
  protocol_.Note(RunPreflight{});
  MustTake(PreflightAnswered{});
  EXPECT_THAT(ErrorOfRoot(PreflightAnswered{}), HasSubstr("it was not requested"));
}

TEST_F(ProtocolTest, GoneEndsWhatRunsOrWasToldToEnd) {
  BePrepared();
  EXPECT_THAT(ErrorOfRoot(Gone{}), HasSubstr("it was not told to end"));
  protocol_.Note(Kill{});
  MustTake(Gone{});
  protocol_.Note(ToAgent(Preparation()));
  MustTake(Refused{{DTRUN_SYSTEM, "no room"}});
}

// Leaving ends the prepared generation, and the agent reports that.
TEST_F(ProtocolTest, GoneFollowsTheWordThatTheJobIsOver) {
  BePrepared();
  protocol_.Note(Over{1, "the other host failed"});
  MustTake(Gone{});
}

TEST_F(ProtocolTest, IgnoresWhatIsSaidOfRanksThatAreGone) {
  Run();
  protocol_.Note(Kill{});
  MustTake(Gone{});
  EXPECT_TRUE(Late(MpiFinished{2}));
  EXPECT_TRUE(Late(MpiServerLost{"died of signal 11"}));
  EXPECT_TRUE(Late(Output{2, output::Stream::kErr, "x"}));
  EXPECT_TRUE(Late(CallsOf(2)));
  EXPECT_THAT(ErrorOfRoot(Ended{2, {}, 0}), HasSubstr("it sent Ended while no ranks were asked for"));
}

TEST_F(ProtocolTest, PortsAreThoseThatWereAskedFor) {
  Join();
  protocol_.Note(ToAgent(Preparation()));
  EXPECT_THAT(ErrorOfRoot(Prepared{99, {{2, 4000}}, "", ""}), HasSubstr("port 99"));
  EXPECT_THAT(ErrorOfRoot(Prepared{-1, {}, "", ""}), HasSubstr("0 ports for ranks, it was asked for 1"));
  EXPECT_THAT(ErrorOfRoot(Prepared{-1, {{5, 4000}}, "", ""}), HasSubstr("port for rank 5"));
  EXPECT_THAT(ErrorOfRoot(Prepared{-1, {{2, 70000}}, "", ""}),
              HasSubstr("port 70000 is not from 1 to 65535"));
}

TEST_F(ProtocolTest, RanksLiveOnTheHostThatSpeaksOfThem) {
  Run();
  EXPECT_THAT(ErrorOfRoot(Output{4, output::Stream::kOut, "x"}),
              HasSubstr("rank 4 does not run on its host"));
  EXPECT_THAT(ErrorOfRoot(Output{-1, output::Stream::kOut, "x"}), HasSubstr("rank -1"));
  EXPECT_THAT(ErrorOfRoot(MpiStarted{0}), HasSubstr("rank 0"));
  EXPECT_THAT(ErrorOfRoot(MpiAborted{std::numeric_limits<int>::max(), 1, ""}), HasSubstr("does not run"));
  EXPECT_THAT(ErrorOfRoot(RankEnded{3, 12, {}}), HasSubstr("not a process of its own"));
  EXPECT_THAT(ErrorOfRoot(CallsOf(4)), HasSubstr("rank 4, which runs on another host"));
  MustTake(CallsOf(3));
  MustTake(Ended{3, {}, SIGTERM});
  EXPECT_THAT(ErrorOfRoot(Ended{3, {}, 0}), HasSubstr("rank 3 has ended before"));
  process::Ending ending;
  ending.signal = 1000;
  EXPECT_THAT(ErrorOfRoot(Ended{2, ending, 0}), HasSubstr("signal 1000"));
}

TEST_F(ProtocolTest, CallsAreOfThisWorld) {
  Run();
  const auto error = [&](auto change) {
    Called called = CallsOf(2);
    change(called.windows[0]);
    return ErrorOfRoot(called);
  };
  EXPECT_NE(error([](auto& one) { one.members[0].rank = 6; }), "");
  EXPECT_NE(error([](auto& one) { one.size = 7; }), "");
  EXPECT_NE(error([](auto& one) { one.idle->started = std::numeric_limits<std::uint64_t>::max(); }), "");
  EXPECT_NE(error([](auto& one) { one.checkpoints = {{65, 1}}; }), "");
  EXPECT_NE(error([](auto& one) { one.calls[0].number = 0; }), "");
  EXPECT_NE(error([](auto& one) { one.calls.resize(5000, {1, 1, {}}); }), "");
  EXPECT_THAT(ErrorOfRoot(Differed{{1, 2, 6, "", true, false}}), HasSubstr("rank 6"));
  MustTake(Differed{{1, 2, 5, "differs", true, true}});
}

TEST_F(ProtocolTest, TriesAreOfPeersAndCandidatesThatThereAre) {
  BeSurveyed();
  EXPECT_THAT(ErrorOf(Try(1, 0, 0)), HasSubstr("its candidate 1 is not from 0 to 0"));
  EXPECT_THAT(ErrorOf(Try(-1, 0, 0)), HasSubstr("its candidate -1"));
  EXPECT_THAT(ErrorOf(Try(0, 0, 1)), HasSubstr("the peer's candidate 1"));
  EXPECT_THAT(ErrorOf(Try(0, 1, 0)), HasSubstr("a try of host 1, which it was not to try"));
  EXPECT_THAT(ErrorOfRoot(ConnectivityChecked{std::vector<network::Attempt>(1000)}),
              HasSubstr("so many tries: 1000"));
  MustTake(Try(0, 2, 1));
  EXPECT_THAT(ErrorOf(Try(0, 2, 1)), HasSubstr("it was not requested"));
}

TEST_F(ProtocolTest, AddressesAndRatesAreNumbersThatCanBe) {
  Join();
  protocol_.Note(Survey{1, "auto", "key"});
  Surveyed surveyed = Offer();
  surveyed.offer.candidates[0].address.prefix = 128;
  EXPECT_THAT(ErrorOfRoot(surveyed), HasSubstr("prefix 128 is not from 0 to 32"));
  protocol_.Note(Measure{});
  for (const double rate : {std::nan(""), -1.0, 1e300, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(ErrorOfRoot(Measured{{rate, {}}}), HasSubstr("bits_per_s"));
  EXPECT_NE(ErrorOfRoot(Measured{{1, std::chrono::nanoseconds(-1)}}), "");
}

TEST_F(ProtocolTest, ExchangesAreOfHostsThatTakePartOnceEach) {
  Run();
  EXPECT_THAT(ErrorOfRoot(Offered{{"e", {0, 2}, ""}}), HasSubstr("it does not take part in"));
  EXPECT_NE(ErrorOfRoot(Offered{{"e", {1, 3}, ""}}), "");
  EXPECT_NE(ErrorOfRoot(Offered{{"e", {1, 0}, ""}}), "");
  EXPECT_NE(ErrorOfRoot(Offered{{"e", {-1, 1}, ""}}), "");
  MustTake(Offered{{"e", {0, 1}, ""}});
  EXPECT_THAT(ErrorOfRoot(Offered{{"e", {0, 1}, ""}}), HasSubstr("a second part of exchange 'e'"));
  protocol_.Note(Exchanged{"e", "", ""});
  MustTake(Offered{{"e", {0, 1}, ""}});
}

TEST_F(ProtocolTest, ClientsOfTheStoreHaveNewNumbers) {
  Join();
  MustTake(ClientOpened{3});
  EXPECT_THAT(ErrorOfRoot(ClientOpened{3}), HasSubstr("client 3 is not from 4"));
  EXPECT_THAT(ErrorOfRoot(ClientData{4, "x"}), HasSubstr("client 4 is not from 1 to 3"));
  EXPECT_THAT(ErrorOfRoot(ClientClosed{0}), HasSubstr("client 0"));
  MustTake(ClientData{1, "of one that has left"});
}

// The agent's side.
TEST_F(ProtocolTest, AnAgentDoesInOrderWhatIsAskedOfIt) {
  EXPECT_THAT(ErrorOfAgent(Preparation()), HasSubstr("Prepare before"));
  Protocol fresh;
  EXPECT_TRUE(fresh.Check(ToAgent(Over{1, "no"})));
  protocol_.Note(Introduction{"node1", "machine", "0.0=0,1", {}});
  EXPECT_THAT(ErrorOfAgent(Start{}), HasSubstr("it sent Start while no ranks were asked for"));
  EXPECT_THAT(ErrorOfAgent(CheckConnectivity{}), HasSubstr("was not surveyed"));
  EXPECT_THAT(ErrorOfAgent(Measure{}), HasSubstr("was not surveyed"));
  EXPECT_THAT(ErrorOfAgent(Signal{0}), HasSubstr("signal 0"));
  EXPECT_THAT(ErrorOfAgent(Exchanged{"e", "", ""}), HasSubstr("nothing was offered"));
  EXPECT_THAT(ErrorOfAgent(ClientData{1, "x"}), HasSubstr("client 1 where none is allowed"));
  EXPECT_EQ(ErrorOfAgent(RunPreflight{}), "");
  EXPECT_THAT(ErrorOfAgent(RunPreflight{}), HasSubstr("the last one is not answered yet"));
  EXPECT_THAT(ErrorOfAgent(Preparation()), HasSubstr("RunPreflight is not answered yet"));
  EXPECT_THAT(ErrorOfAgent(Survey{}), HasSubstr("RunPreflight is not answered yet"));
  protocol_.Note(PreflightAnswered{});
  EXPECT_EQ(ErrorOfAgent(Preparation()), "");
  EXPECT_THAT(ErrorOfAgent(Preparation()), HasSubstr("Prepare while it prepared"));
  EXPECT_THAT(ErrorOfAgent(RunPreflight{}), HasSubstr("RunPreflight while it prepared"));
  protocol_.Note(Prepared{});
  EXPECT_EQ(ErrorOfAgent(Start{}), "");
  EXPECT_THAT(ErrorOfAgent(CallsOf(2)), HasSubstr("rank 2, which runs on this host"));
  EXPECT_EQ(ErrorOfAgent(CallsOf(1)), "");
}

TEST_F(ProtocolTest, APlanForAHostHasAPlaceForEachRank) {
  protocol_.Note(Introduction{});
  const auto error = [&](auto change) {
    Prepare prepare = Preparation();
    change(prepare);
    return ErrorOfAgent(prepare);
  };
  EXPECT_NE(error([](auto& one) { one.world_size = -1; }), "");
  EXPECT_NE(error([](auto& one) { one.world_size = std::numeric_limits<int>::max(); }), "");
  EXPECT_NE(error([](auto& one) { one.processes[1].rank = 2; }), "");
  EXPECT_NE(error([](auto& one) { one.processes[1].rank_count = 4; }), "");
  EXPECT_NE(error([](auto& one) { one.processes[1].argv.clear(); }), "");
  EXPECT_NE(error([](auto& one) { one.task_ranks = {6}; }), "");
  EXPECT_NE(error([](auto& one) { one.master_port = 65536; }), "");
  EXPECT_NE(error([](auto& one) { one.mpi.here = 3; }), "");
  EXPECT_NE(error([](auto& one) { one.mpi.hosts.clear(); }), "");
  EXPECT_NE(error([](auto& one) { one.mpi.hosts[1].first_rank = 3; }), "");
  EXPECT_NE(error([](auto& one) { one.mpi.name = "../../etc"; }), "");
  EXPECT_NE(error([](auto& one) { one.grace = -std::chrono::hours(1); }), "");
}

}  // namespace
}  // namespace dtrun::protocol
