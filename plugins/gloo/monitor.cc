#include "monitor.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>

#include "signals.h"

namespace dtrun::gloo_plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTenYears = std::chrono::hours(24 * 3650);
// How long a goodbye may take to reach the kernel. It is eight bytes that the peer has
// asked for in advance, so only a connection full of unread bytes delays it.
constexpr milliseconds kGoodbyeLimit{1000};
constexpr milliseconds kFailureLimit{200};

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
  const BlockSignals block;
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
      // Throws what broke the connection; otherwise a notice that nobody reads.
      const auto probe = mesh_.context()->createUnboundBuffer(nullptr, 0);
      probe->send(peer, MakeSlot(SlotUse::kProbe), 0, 0);
    } catch (const std::exception& error) {
      const std::optional<Parting> parting = mesh_.ReadParting(peer);
      gone_[index] = parting && parting->kind == Parting::kDone;
      if (!gone_[index]) mesh_.FailLost(peer, error.what());
    }
  }
}

void Monitor::Run() {
  const sdk::ThreadScope scope(host_, "gloo-monitor");
  while (!stop_ && !mesh_.failed()) {
    if (Wait()) continue;
    do {
      CheckConnections();
    } while (!mesh_.failed() && !stop_ && !Arm());
  }
  if (mesh_.failed()) {
    SayGoodbye(PartingForFailure(), kFailureLimit);
    mesh_.context()->closeConnections();
  } else {
    SayGoodbye(Parting{Parting::kDone, -1}, kGoodbyeLimit);
  }
}

Parting Monitor::PartingForFailure() const {
  const Cause cause = mesh_.cause().value_or(Cause{});
  switch (cause.code) {
    case DTRUN_TIMEOUT: return {Parting::kTimeout, cause.awaited};
    case DTRUN_ABORTED: return {Parting::kAborted, -1};
    case DTRUN_REMOTE_FAILURE: return {Parting::kLostPeer, cause.peer};
    default: return {Parting::kOther, -1};
  }
}

void Monitor::SayGoodbye(const Parting& parting, milliseconds limit) {
  const Deadline deadline{limit};
  std::vector<std::unique_ptr<::gloo::transport::UnboundBuffer>> buffers;
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank() || gone_[static_cast<std::size_t>(peer)]) continue;
    auto buffer = mesh_.context()->createUnboundBuffer(const_cast<Parting*>(&parting), sizeof parting);
    try {
      buffer->send(peer, MakeSlot(SlotUse::kParting), 0, sizeof parting);
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
