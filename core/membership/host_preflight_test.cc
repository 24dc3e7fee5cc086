#include "core/membership/host_preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/preflight/preflight.h"
#include "core/process/testing.h"

namespace dtrun::membership {
namespace {

using ::testing::HasSubstr;

// The other end of a link: an agent that answers each request with `reply`, or is lost if there is none.
class AskedAgent final : public protocol::Channel {
 public:
  using Reply = std::function<preflight::Answer(const preflight::Request& request)>;
  AskedAgent(boost::asio::io_context& loop, Reply reply) : loop_(loop), reply_(std::move(reply)) {}

  void Start(Handlers handlers) override {
    handlers_ = std::move(handlers);
    handlers_.on_message(Encode(protocol::ToRoot(protocol::Introduction{"node1", "machine", "0.0=0", {}})));
  }
  void Send(std::string_view message) override {
    const Result<protocol::ToAgent> told = protocol::DecodeToAgent(message);
    ASSERT_TRUE(told) << told.error().text;
    const auto* const run = std::get_if<protocol::RunPreflight>(&*told);
    if (run == nullptr) return;
    boost::asio::post(loop_, [this, request = run->request] {
      if (!reply_) return handlers_.on_lost({true, {DTRUN_REMOTE_FAILURE, "its agent has ended"}});
      handlers_.on_message(Encode(protocol::ToRoot(protocol::PreflightAnswered{reply_(request)})));
    });
  }
  std::size_t queued_bytes() const override { return 0; }
  void Close(std::function<void()> done) override {
    if (done) done();
  }
  const std::string& peer() const override { return peer_; }

 private:
  boost::asio::io_context& loop_;
  const Reply reply_;
  const std::string peer_ = "10.0.0.7:5555";
  Handlers handlers_;
};

preflight::Request About(const std::string& program) {
  preflight::Request request;
  request.program = program;
  return request;
}

class HostPreflightTest : public ::testing::Test {
 protected:
  std::unique_ptr<RemoteHost> HostWith(AskedAgent::Reply reply) {
    return std::make_unique<RemoteHost>(loop_, "node1", std::make_unique<AskedAgent>(loop_, std::move(reply)),
                                        services_, [](const protocol::Introduction&) {});
  }

  process::testing::SocketPair control_;
  process::Lifeline lifeline_{"/", std::move(control_.ours)};
  boost::asio::io_context loop_;
  process::UserSignals signals_{loop_, lifeline_};
  const RemoteHost::Services services_{{}, [](store::Socket) {}, [](const std::string&) {}};
  HostPreflight preflight_{loop_, signals_};
};

TEST_F(HostPreflightTest, EachHostGetsItsRequestAndAnswersComeByHost) {
  const auto echo = [](const preflight::Request& request) { return preflight::Answer{{{request.program}}}; };
  const auto first = HostWith(echo), second = HostWith(echo);
  const auto answers = preflight_.Run({About("a"), About("b")}, {first.get(), second.get()});
  ASSERT_TRUE(answers) << answers.error().text;
  EXPECT_EQ(answers->front().backends.at(0).name, "a");
  EXPECT_EQ(answers->back().backends.at(0).name, "b");
}

TEST_F(HostPreflightTest, ThisHostIsAskedBesideTheOthers) {
  const auto other = HostWith([](const preflight::Request&) { return preflight::Answer{{{"there"}}}; });
  const auto answers = preflight_.Run({{}, {}}, {nullptr, other.get()});
  ASSERT_TRUE(answers) << answers.error().text;
  EXPECT_GT(answers->front().clock_seconds, 0);
  EXPECT_EQ(answers->back().backends.at(0).name, "there");
}

TEST_F(HostPreflightTest, AHostThatIsLostIsNamed) {
  const auto lost = HostWith({});
  const auto answers = preflight_.Run({{}}, {lost.get()});
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code, DTRUN_REMOTE_FAILURE);
  EXPECT_THAT(answers.error().text, HasSubstr("host node1 was lost: its agent has ended"));
}

TEST_F(HostPreflightTest, TheUserEndsItWhileAHostIsSilent) {
  const auto silent = HostWith([](const preflight::Request&) {
    ::raise(SIGTERM);
    return preflight::Answer{};  // too late
  });
  const auto patient = HostWith([](const preflight::Request&) { return preflight::Answer{}; });
  boost::asio::io_context elsewhere;  // never runs, so this agent never answers
  RemoteHost mute(
      elsewhere, "node2",
      std::make_unique<AskedAgent>(elsewhere, [](const preflight::Request&) { return preflight::Answer{}; }),
      services_, [](const protocol::Introduction&) {});
  const auto answers = preflight_.Run({{}, {}, {}}, {silent.get(), patient.get(), &mute});
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code, DTRUN_ABORTED);
  EXPECT_EQ(preflight_.interrupted(), SIGTERM);
}

}  // namespace
}  // namespace dtrun::membership
