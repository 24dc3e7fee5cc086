// A controller with a local host, and hosts that follow a test's script.
//
// Fixtures for the tests of core/job/controller.h; the test's thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/job/controller.h"
#include "core/job/testing_run.h"
#include "core/node/inheritance.h"
#include "core/node/local_host.h"
#include "core/process/process.h"
#include "core/process/testing.h"

namespace dtrun::job::testing {

inline constexpr char kSleep[] = "exec sleep 1000";

// An output that outlives the run.
class Keeper : public output::RankOutput {
 public:
  explicit Keeper(output::RankOutput& to) : to_(to) {}
  void Feed(output::Stream stream, std::string_view bytes) override { to_.Feed(stream, bytes); }
  void Close(output::Stream stream) override { to_.Close(stream); }
  void Idle() override { to_.Idle(); }
  std::vector<std::string> Tail(std::size_t count) const override { return to_.Tail(count); }

 private:
  output::RankOutput& to_;
};

class ControllerTest : public ::testing::Test {
 protected:
  void SetUp() override { process::BecomeSubreaper(); }
  void TearDown() override { EXPECT_THAT(process::testing::Marked(mark_), ::testing::IsEmpty()); }

  void Plan(const std::vector<std::string>& scripts) {
    plan_ = ShellPlan(scripts, mark_, scratch_.path());
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      owned_.push_back(std::make_unique<process::testing::MemoryOutput>());
    }
  }

  Result<verdict::Facts> Run(int stdin_fd = -1) {
    node::LocalOptions options;
    options.socket_dir = scratch_.path();
    options.serve = [](store::Socket) {};
    options.environment = node::OwnEnvironment();
    options.stdin_fd = stdin_fd;
    controller_.reset();  // it refers to the host
    host_ = node::MakeLocalHost(loop_, std::move(options));
    controller_.emplace(
        loop_, signals_, plan_, std::vector{host_.get()},
        [this](const std::string& line) {
          said_.push_back(line);
          if (on_say_) on_say_();
        },
        log_);
    Result<std::vector<protocol::Prepared>> prepared = controller_->Prepare(0, std::string(64, '0'));
    if (!prepared) return prepared.error();
    World world;
    world.tokens.resize(1);
    world.fails_alike_within = fails_alike_within_;
    world.told_within = {};
    // Outputs end with the run, so keep those that the test reads.
    for (auto& output : owned_) world.outputs.push_back(std::make_unique<Keeper>(*output));
    const Status ran = controller_->Run(std::move(world));
    for (auto& output : owned_) {
      printed_.push_back(output->out);
      complained_.push_back(output->err);
      closed_.push_back(output->closed);
    }
    if (!ran) return ran.error();
    return log_.facts();
  }

  verdict::Facts MustRun(int stdin_fd = -1) {
    Result<verdict::Facts> facts = Run(stdin_fd);
    if (facts) return *facts;
    ADD_FAILURE() << facts.error().text;
    std::abort();
  }

  void Send(int signal) {
    const char message = static_cast<char>(signal);
    ASSERT_EQ(::send(control_.ours.get(), &message, 1, 0), 1);
  }

  // Runs `act` once, when rank 0 has printed "ready".
  void WhenReady(std::function<void()> act) {
    owned_[0]->on_feed = [this, act = std::move(act), done = false]() mutable {
      if (done || owned_[0]->out.find("ready\n") == std::string::npos) return;
      done = true;
      act();
    };
  }

  process::testing::ScratchDir scratch_;
  const std::string mark_ = process::testing::NewMark();
  plan::Plan plan_;
  process::testing::SocketPair control_;
  process::Lifeline lifeline_{scratch_.path(), std::move(control_.theirs)};
  boost::asio::io_context loop_;
  process::UserSignals signals_{loop_, lifeline_};
  std::vector<std::unique_ptr<process::testing::MemoryOutput>> owned_;
  std::unique_ptr<protocol::Host> host_;
  verdict::EventLog log_;
  std::optional<Controller> controller_;
  std::vector<std::string> printed_, complained_;
  std::vector<int> closed_;
  std::vector<std::string> said_;
  std::function<void()> on_say_;
  std::chrono::nanoseconds fails_alike_within_{0};
};

// A host with one process that emits scripted events.
class ScriptedHost final : public protocol::Host {
 public:
  ScriptedHost(boost::asio::io_context& loop, std::vector<protocol::Event> at_start,
               std::vector<protocol::Event> at_stop)
      : loop_(loop), at_start_(std::move(at_start)), at_stop_(std::move(at_stop)) {}

  void Do(const protocol::Command& command) override {
    if (std::holds_alternative<protocol::Prepare>(command)) Post({protocol::Prepared()});
    if (std::holds_alternative<protocol::Start>(command)) Post(at_start_);
    if (const auto* inspect = std::get_if<protocol::Inspect>(&command);
        inspect != nullptr && !looks.empty()) {
      Post({protocol::Inspected{inspect->number, looks.front()}});
      if (looks.size() > 1) looks.erase(looks.begin());
      Post(std::exchange(after_look, {}));
    }
    if (!std::holds_alternative<protocol::Stop>(command)) return;
    told_at_stop = told_;
    Post(at_stop_);
  }

  std::vector<std::vector<verdict::RankDoing>> looks;  // results of successive looks; the last one repeats
  std::vector<protocol::Event> after_look;             // events after the first look
  int told_at_stop = -1;                               // number of events that it had emitted by then

 private:
  void Post(const std::vector<protocol::Event>& events) {
    for (const protocol::Event& event : events) {
      boost::asio::post(loop_, [this, event] {
        ++told_;
        Emit(event);
      });
    }
  }

  boost::asio::io_context& loop_;
  const std::vector<protocol::Event> at_start_, at_stop_;
  int told_ = 0;
};

inline constexpr process::Ending kTerminated{0, SIGTERM};

}  // namespace dtrun::job::testing
