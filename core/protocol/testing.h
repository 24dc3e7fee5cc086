// Shared by control-link tests: a loop that runs until a condition holds, and both ends of a channel over
// loopback.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/protocol/dialer.h"
#include "core/protocol/listener.h"

namespace dtrun::protocol::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline const std::string kDigits(64, 'a');
inline const std::string kOtherDigits(64, 'b');
inline Key AKey(const std::string& digits = kDigits) { return *Key::FromHex(digits); }

// Runs the loop until `condition` holds; false after a timeout that only a broken program reaches.
inline bool RunUntil(asio::io_context& loop, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (!condition()) {
    loop.restart();
    if (std::chrono::steady_clock::now() > deadline) return false;
    loop.run_one_for(milliseconds(50));
  }
  return true;
}

// One end of a channel, and the calls to its handlers.
struct End {
  void Take(std::unique_ptr<Channel> taken, bool keep = true) {
    channel = std::move(taken);
    channel->Start({.on_message =
                        [this, keep](std::string_view message) {
                          ++count;
                          bytes += message.size();
                          if (keep) messages.emplace_back(message);
                          if (on_message) on_message(message);
                        },
                    .on_lost = [this](const Loss& loss) { losses.push_back(loss); },
                    .on_drained = [this] { ++drained; }});
  }

  std::unique_ptr<Channel> channel;
  std::vector<std::string> messages;
  std::vector<Loss> losses;
  std::function<void(std::string_view)> on_message;
  std::size_t count = 0, bytes = 0;
  int drained = 0;
};

// A root that accepts one agent at a time, and the options to reach it.
struct Root {
  explicit Root(asio::io_context& on, const std::function<void(Listener::Options&)>& change = {}) : loop(on) {
    Listener::Options options{
        .address = "127.0.0.1", .job = "a", .key = AKey(), .welcome = {.host_name = "root"}};
    if (change) change(options);
    auto result = Listener::Listen(
        loop, options,
        {.admit = [this](const Hello& hello,
                         const std::string& from) { return admit ? admit(hello, from) : Status{}; },
         .on_joined =
             [this](Hello hello, std::unique_ptr<Channel> channel) {
               hellos.push_back(std::move(hello));
               joined.push_back(std::move(channel));
             },
         .on_refused = [this](const std::string& line) { lines.push_back(line); }});
    EXPECT_TRUE(result) << result.error().text;
    if (result) listener = *std::move(result);
  }

  Dialer::Options Way() const {
    return {.names = {"127.0.0.1"},
            .port = listener->port(),
            .hello = {.job = "a", .host_index = 3, .host_name = "node3"},
            .key = AKey(),
            .deadline = seconds(60),
            .first_pause = milliseconds(1),
            .max_pause = milliseconds(20)};
  }

  asio::io_context& loop;
  std::unique_ptr<Listener> listener;
  std::function<Status(const Hello&, const std::string&)> admit;
  std::vector<Hello> hellos;
  std::vector<std::unique_ptr<Channel>> joined;
  std::vector<std::string> lines;
};

// An agent that is joining.
struct Agent {
  Agent(asio::io_context& loop, const Dialer::Options& options) {
    dialer = Dialer::Start(loop, options,
                           {.on_joined =
                                [this](Welcome told, std::unique_ptr<Channel> taken) {
                                  welcome = std::move(told);
                                  channel = std::move(taken);
                                  ended = true;
                                },
                            .on_failed =
                                [this](const Error& why) {
                                  error = why;
                                  ended = true;
                                }});
  }

  std::unique_ptr<Dialer> dialer;
  std::unique_ptr<Channel> channel;
  Welcome welcome;
  Error error;
  bool ended = false;
};

// Both ends of a started channel.
struct Pair {
  explicit Pair(milliseconds root_limit = seconds(60), milliseconds agent_limit = seconds(60),
                bool keep = true)
      : root(loop, [&](Listener::Options& options) { options.welcome.loss_limit = root_limit; }) {
    Dialer::Options way = root.Way();
    way.hello.loss_limit = agent_limit;
    Agent agent(loop, way);
    EXPECT_TRUE(RunUntil(loop, [&] { return agent.ended && !root.joined.empty(); })) << agent.error.text;
    near.Take(std::move(root.joined.front()), keep);
    far.Take(std::move(agent.channel), keep);
  }
  bool Until(const std::function<bool()>& condition) { return RunUntil(loop, condition); }

  asio::io_context loop;
  Root root;
  End near, far;  // the root's end and the agent's
};

}  // namespace dtrun::protocol::testing
