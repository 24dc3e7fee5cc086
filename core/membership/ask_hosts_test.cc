// tests/test_doctor.py covers hosts with agents.
#include "core/membership/ask_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/preflight/preflight.h"
#include "core/process/testing.h"

namespace dtrun::membership {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class AskHostsTest : public ::testing::Test {
 protected:
  // Asks this machine and `others`, each with its own request.
  Result<Answers> Ask(Cluster cluster, const std::vector<std::string>& others) {
    Inquiry inquiry{"job", {"here"}, {}, {}};
    inquiry.hosts.insert(inquiry.hosts.end(), others.begin(), others.end());
    for (std::size_t i = 0; i < inquiry.hosts.size(); ++i) {
      preflight::Request request;
      request.backends = {{"host " + std::to_string(i), "", "", "", true}};
      inquiry.requests.push_back(request);
      inquiry.network_rules.push_back({"auto", ""});
    }
    cluster.hosts = inquiry.hosts;
    cluster.min_hosts = inquiry.hosts.size();
    cluster.here = 0;
    cluster.join_timeout = std::chrono::milliseconds(300);
    cluster.lost_after = std::chrono::seconds(10);
    return AskHosts(cluster, inquiry, lifeline_, [](const std::string&) {});
  }

  process::testing::SocketPair control_;
  process::Lifeline lifeline_{"/", std::move(control_.ours)};
};

TEST_F(AskHostsTest, ThisHostAnswersItsOwnRequestAndHasNoNetworkToFind) {
  const auto answers = Ask({}, {});
  ASSERT_TRUE(answers) << answers.error().text;
  ASSERT_THAT(answers->by_host, SizeIs(1));
  EXPECT_EQ(answers->by_host.front().backends.at(0).name, "host 0");
  EXPECT_FALSE(answers->network);
}

TEST_F(AskHostsTest, AHostThatNobodyStartsIsNamed) {
  Cluster cluster;
  cluster.connect = Cluster::Connect::kManual;
  const auto answers = Ask(cluster, {"absent"});
  ASSERT_FALSE(answers);
  EXPECT_THAT(answers.error().text, AllOf(HasSubstr("1 of 2 hosts joined"), HasSubstr("missing: absent")));
}

TEST_F(AskHostsTest, AShellThatDoesNotReachAHostIsQuoted) {
  Cluster cluster;
  cluster.remote_shell = {"sh", "-c", "echo no route to $0 >&2; exit 255"};
  cluster.dtrun = "/nowhere/dtrun";
  const auto answers = Ask(cluster, {"afar"});
  ASSERT_FALSE(answers);
  EXPECT_THAT(answers.error().text, AllOf(HasSubstr("afar"), HasSubstr("no route to afar")));
}

}  // namespace
}  // namespace dtrun::membership
