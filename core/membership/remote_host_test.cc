#include "core/membership/remote_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "core/job/controller.h"
#include "core/job/testing_run.h"
#include "core/membership/network.h"
#include "core/process/testing.h"
#include "core/protocol/testing_channel.h"

namespace dtrun::membership {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Two remote hosts with agents simulated by the test, rank by rank.
class RemoteHostTest : public ::testing::Test {
 protected:
  RemoteHostTest() {
    for (int i = 0; i < 2; ++i) {
      stubs_.push_back(std::make_shared<protocol::testing::AgentStub>());
      hosts_.push_back(std::make_unique<RemoteHost>(
          loop_, "node" + std::to_string(i), std::make_unique<protocol::testing::StubChannel>(stubs_.back()),
          services_, [](const protocol::Introduction&) {}));
      stubs_.back()->Say(protocol::Introduction{"host", "machine" + std::to_string(i), "0.0=0,1", {}});
    }
    plan_ = job::testing::ShellPlan({"true", "true"}, mark_, scratch_.path());
    plan_.hosts = {{"node0", 0, 1}, {"node1", 1, 1}};
    plan_.processes[1].host = 1;
    plan_.processes[1].local_rank = 0;
  }

  // An agent that obeys, except for messages that `unlike` handles.
  void Behave(int host, std::function<bool(const protocol::ToAgent&)> unlike = {}) {
    stubs_[host]->on_told = [this, host, unlike](const protocol::ToAgent& told) {
      if (unlike && unlike(told)) return;
      if (std::holds_alternative<protocol::Prepare>(told))
        Say(host, protocol::Prepared{host == 0 ? 1234 : -1, {}, "/s", "/r"});
      if (std::holds_alternative<protocol::Start>(told)) Say(host, protocol::Started{{100 + host}});
      if (std::holds_alternative<protocol::Stop>(told) || std::holds_alternative<protocol::Kill>(told))
        End(host);
    };
  }
  // From the loop, like every message of an agent.
  void Say(int host, const protocol::ToRoot& message) {
    boost::asio::post(loop_, [stub = stubs_[host], bytes = Encode(message)] { stub->SayBytes(bytes); });
  }
  void End(int host, int code = 0) {
    process::Ending ending;
    ending.code = code;
    Say(host, protocol::Ended{host, ending, 0});
    Say(host, protocol::Gone{});
  }

  Result<verdict::Facts> Run() {
    controller_.emplace(
        loop_, signals_, plan_, std::vector<protocol::Host*>{hosts_[0].get(), hosts_[1].get()},
        [this](const std::string& line) { said_.push_back(line); }, log_);
    Result<std::vector<protocol::Prepared>> prepared = controller_->Prepare(0, std::string(64, '0'));
    if (!prepared) return prepared.error();
    job::World world;
    world.tokens.resize(2);
    for (int i = 0; i < 2; ++i) world.outputs.push_back(std::make_unique<process::testing::MemoryOutput>());
    if (const Status ran = controller_->Run(std::move(world)); !ran) return ran.error();
    return log_.facts();
  }
  std::string ErrorOfRun() {
    const Result<verdict::Facts> facts = Run();
    return facts ? "" : facts.error().text;
  }
  // Why node1 was lost.
  std::string WhyLost() {
    const Result<verdict::Facts> facts = Run();
    if (!facts) return "not started: " + facts.error().text;
    if (facts->losses.size() != 1 || facts->losses[0].host != "node1") return "not lost alone";
    EXPECT_TRUE(stubs_[1]->closed) << "its agent was not let go";
    return facts->losses[0].why;
  }

  process::testing::ScratchDir scratch_;
  const std::string mark_ = process::testing::NewMark();
  process::testing::SocketPair control_;
  process::Lifeline lifeline_{scratch_.path(), std::move(control_.theirs)};
  boost::asio::io_context loop_;
  process::UserSignals signals_{loop_, lifeline_};
  RemoteHost::Services services_{{}, [](store::Socket) {}, [](const std::string&) {}};
  std::vector<std::shared_ptr<protocol::testing::AgentStub>> stubs_;
  std::vector<std::unique_ptr<RemoteHost>> hosts_;
  plan::Plan plan_;
  verdict::EventLog log_;
  std::optional<job::Controller> controller_;
  std::vector<std::string> said_;
};

TEST_F(RemoteHostTest, CarriesAGenerationFromPrepareToGone) {
  for (const int host : {0, 1}) {
    Behave(host, [this, host](const protocol::ToAgent& told) {
      if (!std::holds_alternative<protocol::Start>(told)) return false;
      Say(host, protocol::Started{{100 + host}});
      Say(host, protocol::Output{host, output::Stream::kOut, "hello"});
      End(host);
      return true;
    });
  }
  const Result<verdict::Facts> facts = Run();
  ASSERT_TRUE(facts) << facts.error().text;
  EXPECT_THAT(facts->losses, SizeIs(0));
  EXPECT_EQ(facts->ranks[1].pid, 101);
  EXPECT_EQ(facts->ranks[1].tail, std::vector<std::string>{"hello"});
}

TEST_F(RemoteHostTest, LosesAHostThatHasStartedWhatNobodyAskedFor) {
  Behave(0);
  Behave(1, [this](const protocol::ToAgent& told) {
    if (std::holds_alternative<protocol::Prepare>(told))
      Say(1, protocol::Started{std::vector<pid_t>(100000, 0x41414141)});
    return false;
  });
  EXPECT_THAT(ErrorOfRun(),
              AllOf(HasSubstr("host node1 was lost"), HasSubstr("it sent Started while it prepared")));
}

TEST_F(RemoteHostTest, LosesAHostThatStartsMoreProcessesThanItHas) {
  Behave(0);
  Behave(1, [this](const protocol::ToAgent& told) {
    if (std::holds_alternative<protocol::Start>(told)) Say(1, protocol::Started{{1, 2, 3}});
    return std::holds_alternative<protocol::Start>(told);
  });
  EXPECT_THAT(WhyLost(), HasSubstr("so many processes: 3 is not from 1 to 1"));
}

TEST_F(RemoteHostTest, LosesAHostThatSpeaksForRanksOfAnother) {
  Behave(0);
  Behave(1, [this](const protocol::ToAgent& told) {
    if (std::holds_alternative<protocol::Start>(told)) {
      Say(1, protocol::Started{{7}});
      Say(1, protocol::Ended{0, {}, 0});
    }
    return std::holds_alternative<protocol::Start>(told);
  });
  EXPECT_THAT(WhyLost(),
              HasSubstr("it sent Ended while its ranks ran: no process of its host begins with rank 0"));
}

// It has no output, but the verdict would look for it.
TEST_F(RemoteHostTest, LosesAHostWhoseRankEndsInsideAProcessThatSpeaksForItself) {
  Behave(0);
  Behave(1, [this](const protocol::ToAgent& told) {
    if (std::holds_alternative<protocol::Start>(told)) {
      process::Ending killed;
      killed.signal = SIGKILL;
      Say(1, protocol::Started{{7}});
      Say(1, protocol::RankEnded{1, 8, killed});
    }
    return std::holds_alternative<protocol::Start>(told);
  });
  EXPECT_THAT(WhyLost(), HasSubstr("rank 1 is not a process of its own on this host"));
}

TEST_F(RemoteHostTest, LosesAHostThatDoesNotEndItsRanks) {
  services_.kill_limit = std::chrono::milliseconds(20);
  plan_.grace = std::chrono::milliseconds(1);
  Behave(0, [this](const protocol::ToAgent& told) {
    if (std::holds_alternative<protocol::Start>(told)) {
      Say(0, protocol::Started{{7}});
      End(0, 3);
    }
    return !std::holds_alternative<protocol::Prepare>(told);
  });
  Behave(1, [](const protocol::ToAgent& told) {
    return std::holds_alternative<protocol::Stop>(told) || std::holds_alternative<protocol::Kill>(told);
  });
  EXPECT_THAT(WhyLost(), HasSubstr("it did not end its ranks within 20ms of being told to kill them"));
  EXPECT_EQ(stubs_[1]->Count<protocol::Kill>(), 1u);
}

TEST_F(RemoteHostTest, LosesAHostThatDoesNotAnswer) {
  services_.answer_limit = std::chrono::milliseconds(20);
  Behave(0);
  Behave(1, [](const protocol::ToAgent&) { return true; });
  EXPECT_THAT(ErrorOfRun(), HasSubstr("host node1 was lost: it has not answered Prepare within 20ms"));
  EXPECT_TRUE(stubs_[1]->closed);
}

TEST_F(RemoteHostTest, EndsWithoutAHostThatNeverAnswersWhenTheGuardIsGone) {
  services_.kill_limit = std::chrono::milliseconds(20);
  Behave(0);
  Behave(1, [this](const protocol::ToAgent& told) {
    if (std::holds_alternative<protocol::Prepare>(told)) control_.ours.Reset();
    return true;
  });
  EXPECT_FALSE(Run());
  EXPECT_EQ(controller_->interrupted(), process::Lifeline::kGuardGone);
  EXPECT_TRUE(hosts_[1]->lost());
  EXPECT_EQ(stubs_[0]->Count<protocol::Kill>(), 1u);
}

TEST_F(RemoteHostTest, TellsWhoAsksAHostThatWasLostBefore) {
  stubs_[1]->SayBytes("nonsense");
  std::string error;
  hosts_[1]->RunPreflight(
      {}, [&](const Result<preflight::Answer>& answer) { error = answer ? "" : answer.error().text; });
  while (error.empty() && loop_.run_one() > 0) {
  }
  EXPECT_EQ(error, "host node1 was lost before it was asked");
}

// Both have one network card; node1's attempts are made up.
TEST_F(RemoteHostTest, LosesAHostWhoseTriesNameWhatIsNotThere) {
  for (const int host : {0, 1}) {
    stubs_[host]->on_told = [this, host](const protocol::ToAgent& told) {
      if (std::holds_alternative<protocol::Survey>(told)) {
        protocol::Surveyed surveyed;
        surveyed.offer.candidates.emplace_back().address = {
            asio::ip::make_address("10.0.0." + std::to_string(host + 1)), 24};
        Say(host, surveyed);
      }
      const int card = host == 1 ? 0x7ffffff : 0;
      if (std::holds_alternative<protocol::CheckConnectivity>(told))
        Say(host, protocol::ConnectivityChecked{{{card, 1 - host, card, "", {}}}});
    };
  }
  NetworkSearch search(loop_, signals_, {{"node0", "m0", hosts_[0].get()}, {"node1", "m1", hosts_[1].get()}});
  const auto decision = search.Run({{"auto", "job.toml"}, {"auto", "job.toml"}});
  ASSERT_FALSE(decision);
  EXPECT_THAT(decision.error().text,
              AllOf(HasSubstr("host node1 was lost"), HasSubstr("its candidate 134217727")));
}

TEST(AddressOf, TakesThePortAndTheBracketsAway) {
  EXPECT_EQ(AddressOf("10.0.0.7:5555"), "10.0.0.7");
  EXPECT_EQ(AddressOf("[fe80::1%2]:5555"), "fe80::1%2");
}

}  // namespace
}  // namespace dtrun::membership
