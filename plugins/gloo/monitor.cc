#include "monitor.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>

#include "dtrun/plugin/block_signals.hpp"
#include "transfer.h"

namespace dtrun::gloo_plugin {
namespace {

using std::chrono::milliseconds;

// How long a goodbye may take to reach the kernel. The peer has asked for it in advance, so
// only a connection full of unread bytes delays it.
constexpr milliseconds kGoodbyeLimit{1000};

}  // namespace

Monitor::Monitor(const sdk::Host& host, Mesh& mesh)
    : host_(host), mesh_(mesh), gone_(static_cast<std::size_t>(mesh.size())) {
  while (!Arm()) {
    CheckConnections();
    mesh_.ThrowIfFailed();
  }
}

Monitor::~Monitor() { Stop(); }

void Monitor::Start() {
  const sdk::BlockSignals block;
  thread_ = std::thread([this] { Run(); });
}

void Monitor::Stop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  Wake();
  thread_.join();
}

void Monitor::Wake() {
  const std::lock_guard lock(mutex_);
  alarm_->abortWaitRecv();
}

bool Monitor::Arm() {
  std::shared_ptr<::gloo::transport::UnboundBuffer> fresh = mesh_.context()->createUnboundBuffer(nullptr, 0);
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

bool Monitor::Wait() {
  try {
    alarm_->waitRecv(nullptr, kTenYears);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Monitor::CheckConnections() {
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

void Monitor::Run() {
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

void Monitor::SayGoodbye() {
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
      buffer->waitSend(nullptr, std::max(deadline.LeftMilliseconds(), milliseconds(1)));
    } catch (const std::exception&) {
      continue;  // gone meanwhile, or too slow to hear it: it will see the connection close
    }
  }
}

}  // namespace dtrun::gloo_plugin
