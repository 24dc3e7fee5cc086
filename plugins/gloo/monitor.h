// Watches every connection of a mesh and says goodbye for this rank.
//
// Gloo does not report that a connection broke in the middle of a message. So one receive
// that nothing ever answers is posted on each connection: it fails when the connection
// does, and that fails the mesh. Owned by its Mesh; the thread is the only one that closes
// connections. Included by mesh.cc alone.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dtrun/plugin/block_signals.hpp"
#include "graceful_close.h"
#include "mesh.h"
#include "transfer.h"

namespace dtrun::gloo_plugin {

class Monitor {
 public:
  // Once constructed, this rank will hear of every connection's end.
  Monitor(const sdk::Host& host, Mesh& mesh)
      : host_(host), mesh_(mesh), gone_(static_cast<std::size_t>(mesh.size())) {
    while (!Arm()) {
      CheckConnections();
      mesh_.ThrowIfFailed();
    }
  }
  ~Monitor() { Stop(); }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void Start() {
    const sdk::BlockSignals block;
    thread_ = std::thread([this] { Run(); });
  }
  // Tells the peers that this rank leaves without a failure, unless the mesh has failed.
  // Idempotent; the destructor does it too.
  void Stop() {
    if (!thread_.joinable()) return;
    stop_ = true;
    Wake();
    thread_.join();
  }
  // The mesh has failed: tell the peers why and close. Any thread.
  void Wake() {
    const std::lock_guard lock(mutex_);
    alarm_->abortWaitRecv();
  }

 private:
  // How long the peers may take to read the goodbye and what came before it. Gloo's own thread reads there;
  // only a lost packet or a stopped process delays it.
  static constexpr std::chrono::milliseconds kGoodbyeLimit{1000};

  void Run() {
    const sdk::ThreadScope scope(host_, "gloo-monitor");
    while (!stop_ && !mesh_.failure()) {
      if (Wait()) continue;
      do {
        CheckConnections();
      } while (!mesh_.failure() && !stop_ && !Arm());
    }
    if (mesh_.failure()) {
      mesh_.PublishFailure();
      mesh_.context()->closeConnections();
    } else {
      SayGoodbye();
    }
  }

  // False when a connection has failed.
  bool Arm() {
    std::shared_ptr<::gloo::transport::UnboundBuffer> fresh =
        mesh_.context()->createUnboundBuffer(nullptr, 0);
    {
      const std::lock_guard lock(mutex_);
      alarm_ = fresh;
    }
    try {
      for (int peer = 0; peer < mesh_.size(); ++peer) {
        if (peer == mesh_.rank() || gone_[static_cast<std::size_t>(peer)]) continue;
        fresh->recv(peer, MakeSlot(SlotUse::kAlarm), 0, 0);
      }
    } catch (const std::exception&) {
      return false;  // CheckConnections finds out which and why
    }
    return true;
  }

  bool Wait() {
    try {
      alarm_->waitRecv(nullptr, kTenYears);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void CheckConnections() {
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      const auto index = static_cast<std::size_t>(peer);
      if (peer == mesh_.rank() || gone_[index]) continue;
      try {
        // Throws what broke the connection; otherwise a notice that is never read.
        const auto probe = mesh_.context()->createUnboundBuffer(nullptr, 0);
        probe->send(peer, MakeSlot(SlotUse::kProbe), 0, 0);
      } catch (const std::exception& error) {
        gone_[index] = mesh_.SaidGoodbye(peer);
        if (!gone_[index]) mesh_.FailLost(peer, error.what());
      }
    }
  }

  void SayGoodbye() {
    const sdk::Deadline deadline{kGoodbyeLimit};
    std::vector<std::unique_ptr<::gloo::transport::UnboundBuffer>> buffers;
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (peer == mesh_.rank() || gone_[static_cast<std::size_t>(peer)]) continue;
      auto buffer = mesh_.context()->createUnboundBuffer(nullptr, 0);
      try {
        buffer->send(peer, MakeSlot(SlotUse::kGoodbye), 0, 0);
        buffers.push_back(std::move(buffer));
      } catch (const std::exception&) {
        continue;  // this peer is gone already
      }
    }
    for (const auto& buffer : buffers) {
      try {
        buffer->waitSend(nullptr, std::max(deadline.LeftMilliseconds(), std::chrono::milliseconds(1)));
      } catch (const std::exception&) {
        continue;  // gone meanwhile, or too slow to hear it: it will see the connection close
      }
    }
    const GracefulClose close(std::chrono::steady_clock::now() + deadline.LeftMilliseconds());
    mesh_.context()->closeConnections();
  }

  const sdk::Host host_;
  Mesh& mesh_;
  std::vector<bool> gone_;  // peers that left properly; the thread's
  std::mutex mutex_;        // guards the pointer, not what it points at
  std::shared_ptr<::gloo::transport::UnboundBuffer> alarm_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace dtrun::gloo_plugin
