#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/pmi/exchange.h"
#include "core/pmi/pmi1_wire.h"
#include "core/pmi/server.h"

namespace dtrun::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two hosts, each with a server, connected by an exchange as in the controller.
class Pmi1ServerTest : public ::testing::Test {
 protected:
  struct Rank {
    std::unique_ptr<Server>* server;
    UniqueFd socket;
  };

  void Start(const std::vector<int>& local_sizes) {
    int first = 0;
    for (const int size : local_sizes) {
      job_.hosts.push_back({"node" + std::to_string(job_.hosts.size()), first, size});
      first += size;
    }
    job_.kind = Kind::kPmi1;
    job_.name = "job.0";
    for (std::size_t host = 0; host < local_sizes.size(); ++host) {
      Events events;
      events.offered = [this, host](Part part) { exchange_.Offer(static_cast<int>(host), std::move(part)); };
      events.started = [this](int rank) { seen_.push_back("started " + std::to_string(rank)); };
      events.finished = [this](int rank) { seen_.push_back("finished " + std::to_string(rank)); };
      events.aborted = [this](int rank, int code, const std::string&) {
        seen_.push_back("aborted " + std::to_string(rank) + " " + std::to_string(code));
      };
      events.broke = [this](int rank, const std::string& why) {
        seen_.push_back("broke " + std::to_string(rank) + " " + why);
      };
      servers_.push_back(MakePmi1Server(loop_, std::move(events)));
      Job job = job_;
      job.here = static_cast<int>(host);
      ASSERT_TRUE(servers_.back()->Begin(job));
    }
    for (std::size_t host = 0; host < local_sizes.size(); ++host) {
      for (int i = 0; i < local_sizes[host]; ++i) {
        Result<Admission> admission = servers_[host]->Admit(job_.hosts[host].first_rank + i);
        ASSERT_TRUE(admission);
        ranks_.push_back({&servers_[host], std::move(admission->descriptor)});
      }
    }
  }

  void Say(int rank, const std::string& line) {
    const UniqueFd& socket = ranks_[static_cast<std::size_t>(rank)].socket;
    ASSERT_EQ(::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size()));
    loop_.restart();
    loop_.poll();
  }

  // The data received by the rank: lines, or "closed".
  std::string Hear(int rank) {
    char bytes[4096];
    const int fd = ranks_[static_cast<std::size_t>(rank)].socket.get();
    const ssize_t size = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size == 0) return "closed";
    return size < 0 ? "" : std::string(bytes, static_cast<std::size_t>(size));
  }

  std::string Ask(int rank, const std::string& line) {
    Say(rank, line);
    return Hear(rank);
  }

  boost::asio::io_context loop_;
  Job job_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Rank> ranks_;
  std::vector<std::string> seen_;
  Exchange exchange_{[this](int host, const std::string& name, const Result<std::string>& all) {
    servers_[static_cast<std::size_t>(host)]->Complete(name, all);
  }};
};

TEST_F(Pmi1ServerTest, TellsARankWhereItIs) {
  Start({2});
  EXPECT_EQ(Ask(1, "cmd=init pmi_version=1 pmi_subversion=1\n"),
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
  EXPECT_EQ(Ask(1, "cmd=get_maxes\n"), "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  EXPECT_EQ(Ask(1, "cmd=get_appnum\n"), "cmd=appnum rc=0 appnum=0\n");
  EXPECT_EQ(Ask(1, "cmd=get_universe_size\n"), "cmd=universe_size rc=0 size=2\n");
  EXPECT_EQ(Ask(1, "cmd=get_my_kvsname\n"), "cmd=my_kvsname rc=0 kvsname=job.0\n");
  EXPECT_EQ(Ask(1, "cmd=get kvsname=job.0 key=PMI_process_mapping\n"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n");
  EXPECT_EQ(Ask(1, "cmd=finalize\n"), "cmd=finalize_ack rc=0\n");
  EXPECT_THAT(seen_, ElementsAre("started 1", "finished 1"));
}

TEST_F(Pmi1ServerTest, ABarrierOfSeveralHostsExchangesTheirKeys) {
  Start({2, 1});
  EXPECT_EQ(Ask(2, "cmd=put kvsname=job.0 key=card2 value=over-there\n"),
            "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(Ask(0, "cmd=put kvsname=job.0 key=card0 value=here\n"), "cmd=put_result rc=0 msg=success\n");
  for (const int rank : {0, 1}) Say(rank, "cmd=barrier_in\n");
  EXPECT_EQ(Hear(0), "");
  EXPECT_EQ(Ask(2, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
  for (const int rank : {0, 1}) EXPECT_EQ(Hear(rank), "cmd=barrier_out rc=0\n");
  EXPECT_THAT(Ask(0, "cmd=get kvsname=job.0 key=card2\n"), HasSubstr("value=over-there\n"));
  EXPECT_THAT(Ask(2, "cmd=get kvsname=job.0 key=card0\n"), HasSubstr("value=here\n"));
  // The next barrier is a different exchange.
  for (const int rank : {0, 1}) Say(rank, "cmd=barrier_in\n");
  EXPECT_EQ(Ask(2, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
}

TEST_F(Pmi1ServerTest, ABarrierThatCannotEndClosesTheConnections) {
  Start({1, 1});
  Say(0, "cmd=barrier_in\n");
  exchange_.Fail(Error{DTRUN_ABORTED, "rank 1 has ended"});
  EXPECT_EQ(Hear(0), "closed");
}

TEST_F(Pmi1ServerTest, RefusesWhatItDoesNotServe) {
  Start({1});
  EXPECT_EQ(Ask(0, "cmd=get kvsname=job.0 key=none\n"),
            "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  EXPECT_THAT(Ask(0, "cmd=put key=" + std::string(65, 'k') + " value=v\n"), HasSubstr("rc=-1"));
  EXPECT_EQ(Ask(0, "mcmd=spawn\ntotspawns=2\nspawnssofar=1\nendcmd\n"), "");
  EXPECT_THAT(Ask(0, "mcmd=spawn\ntotspawns=2\nspawnssofar=2\nendcmd\n"),
              HasSubstr("cmd=spawn_result rc=-1"));
  EXPECT_THAT(Ask(0, "cmd=publish_name service=a port=b\n"), HasSubstr("cmd=publish_result rc=-1"));
  EXPECT_THAT(Ask(0, "cmd=lookup_name service=a\n"), HasSubstr("cmd=lookup_result rc=-1"));
  EXPECT_THAT(Ask(0, "cmd=frobnicate\n"), HasSubstr("cmd=frobnicate_result rc=-1"));
}

TEST_F(Pmi1ServerTest, DropsARankThatSpeaksSomethingElse) {
  Start({2});
  EXPECT_EQ(Ask(0, "hello\n"), "closed");
  EXPECT_EQ(Ask(1, "cmd=get_appnum\n"), "cmd=appnum rc=0 appnum=0\n");
}

TEST_F(Pmi1ServerTest, CountsARankOnceInABarrier) {
  Start({2});
  Say(0, "cmd=barrier_in\n");
  EXPECT_EQ(Ask(0, "cmd=barrier_in\n"), "closed") << "rank 1 has not come";
  EXPECT_EQ(Hear(1), "");
  EXPECT_THAT(seen_, ElementsAre("broke 0 'barrier_in' while it waits in a barrier"));
}

TEST_F(Pmi1ServerTest, NamesWhatMakesNoSense) {
  Start({3, 1});
  Say(0, "cmd=barrier_in\n");
  EXPECT_EQ(Ask(0, "cmd=put kvsname=job.0 key=a value=b\n"), "closed");
  EXPECT_EQ(Ask(1, "cmd=finalize\n"), "cmd=finalize_ack rc=0\n");
  EXPECT_EQ(Ask(1, "cmd=barrier_in\n"), "closed");
  EXPECT_EQ(Ask(2, "hello\n"), "closed");
  EXPECT_THAT(seen_, ElementsAre("broke 0 'put' while it waits in a barrier", "finished 1",
                                 "broke 1 'barrier_in' after 'finalize'",
                                 "broke 2 PMI request 'hello': a word without '='"));
}

TEST_F(Pmi1ServerTest, AnotherProgramOfARankMayBeginAgain) {
  Start({1});
  for (int i = 0; i < 2; ++i) {
    Ask(0, "cmd=init pmi_version=1 pmi_subversion=1\n");
    EXPECT_EQ(Ask(0, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
    Ask(0, "cmd=finalize\n");
  }
  EXPECT_THAT(seen_, ElementsAre("started 0", "finished 0", "started 0", "finished 0"));
}

TEST_F(Pmi1ServerTest, KeepsABoundedAmountOfWhatRanksPut) {
  Start({1});
  const std::string value(kMaxValueBytes, 'v');
  std::string answer;
  int puts = 0;
  while (answer.find("rc=-1") == std::string::npos && puts < (1 << 20))
    answer = Ask(0, "cmd=put kvsname=job.0 key=k" + std::to_string(puts++) + " value=" + value + "\n");
  EXPECT_THAT(answer, HasSubstr("no_room_left"));
  EXPECT_LE(puts, 64 << 10);
}

TEST_F(Pmi1ServerTest, DropsARankThatDoesNotReadItsAnswers) {
  Start({1});
  std::string many;
  for (int i = 0; i < 100; ++i) many += "cmd=get_appnum\n";
  for (int i = 0; i < 1000 && seen_.empty(); ++i) Say(0, many);
  EXPECT_THAT(seen_, ElementsAre("broke 0 it does not read its answers"));
}

TEST_F(Pmi1ServerTest, HearsOfAnAbort) {
  Start({1});
  EXPECT_EQ(Ask(0, "cmd=abort exitcode=7\n"), "");
  EXPECT_THAT(seen_, ElementsAre("aborted 0 7"));
}

TEST_F(Pmi1ServerTest, ANewGenerationKnowsNothingOfTheLast) {
  Start({1});
  EXPECT_THAT(Ask(0, "cmd=put kvsname=job.0 key=a value=b\n"), HasSubstr("rc=0"));
  ASSERT_TRUE(servers_[0]->Begin(job_));
  EXPECT_EQ(Hear(0), "closed");
  ranks_[0].socket = std::move(servers_[0]->Admit(0)->descriptor);
  EXPECT_THAT(Ask(0, "cmd=get kvsname=job.0 key=a\n"), HasSubstr("rc=-1"));
}

TEST(ProcessMapping, FoldsHostsThatAreAlike) {
  EXPECT_EQ(ProcessMapping({{"a", 0, 2}, {"b", 2, 2}, {"c", 4, 1}}), "(vector,(0,2,2),(2,1,1))");
}

}  // namespace
}  // namespace dtrun::pmi
