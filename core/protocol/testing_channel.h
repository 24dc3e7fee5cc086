// An agent simulated by a test: the root's end of its channel without a network.
//
// On the test's loop, owned by the RemoteHost. The test must keep an AgentStub while it lives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/protocol/channel.h"
#include "core/protocol/messages.h"

namespace dtrun::protocol::testing {

// State shared by both ends.
struct AgentStub {
  protocol::Channel::Handlers root;  // empty once the root has closed or dropped it
  std::function<void(const ToAgent&)> on_told;
  std::vector<std::string> told;  // encoded messages of the root
  bool closed = false;            // by the root, with a goodbye

  void Say(const ToRoot& message) { SayBytes(Encode(message)); }
  void SayBytes(const std::string& bytes) {
    const auto on_message = root.on_message;  // a copy: the call may end the channel
    if (on_message) on_message(bytes);
  }
  void Vanish() {
    const auto on_lost = std::exchange(root, {}).on_lost;
    if (on_lost) on_lost({false, {DTRUN_REMOTE_FAILURE, "the connection broke"}});
  }
  template <class T>
  std::size_t Count() const {
    std::size_t count = 0;
    for (const std::string& bytes : told) {
      count += std::holds_alternative<T>(DecodeToAgent(bytes).value()) ? 1 : 0;
    }
    return count;
  }
};

class StubChannel final : public protocol::Channel {
 public:
  explicit StubChannel(std::shared_ptr<AgentStub> stub) : stub_(std::move(stub)) {}
  ~StubChannel() override { stub_->root = {}; }

  void Start(Handlers handlers) override { stub_->root = std::move(handlers); }
  void Send(std::string_view message) override {
    if (stub_->closed) return;
    const std::string& bytes = stub_->told.emplace_back(message);
    if (stub_->on_told) stub_->on_told(DecodeToAgent(bytes).value());
  }
  std::size_t queued_bytes() const override { return 0; }
  void Close(std::function<void()> done) override {
    stub_->closed = true;
    stub_->root = {};
    if (done) done();
  }
  const std::string& peer() const override { return peer_; }

 private:
  const std::shared_ptr<AgentStub> stub_;
  const std::string peer_ = "127.0.0.1:5555";
};

}  // namespace dtrun::protocol::testing
