#include "mesh.h"

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "addresses.h"
#include "dtrun/plugin/block_signals.hpp"
#include "monitor.h"
#include "timer.h"
#include "transfer.h"

namespace dtrun::gloo_plugin {
namespace {

using sdk::Failure;
using std::chrono::milliseconds;

// How long a failure waits for its announcement to the other ranks.
constexpr milliseconds kPublishLimit{500};
// How long the end of a broken connection may take to be noticed.
constexpr milliseconds kBrokenLinkLimit{5000};

// Gloo puts "[file:line] " in front of its texts.
std::string WithoutPlace(const std::string& what) {
  const std::size_t end = what.find("] ");
  return !what.empty() && what[0] == '[' && end != std::string::npos ? what.substr(end + 2) : what;
}

std::shared_ptr<::gloo::transport::Device> MakeDevice(const std::string& address) {
  const sdk::BlockSignals block;  // the device starts a thread
  ::gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  return ::gloo::transport::tcp::CreateDevice(attributes);
}

// A context with pairs that this plugin connects: where each peer reaches this rank, and which side connects.
//
// Gloo's own rendezvous (Context::connectFullMesh) stores 136 bytes for every pair and has every
// rank read all of them, and the names of all hosts besides; on one host the kernel searches for
// a free port n (n - 1) times. Here a rank publishes what differs between its addresses, and ranks
// of one host listen on addresses of their own, where nearly every port is free.
class Wired : public ::gloo::Context {
 public:
  // Listens for every peer. Gloo waits five times `timeout` for one, and for ever when it is 0.
  // Throws Gloo's exceptions, as Connect does.
  Wired(int own_rank, int ranks, const interfaces::Interface& interface, milliseconds timeout)
      : ::gloo::Context(own_rank, ranks) {
    setTimeout(timeout);
    device_ = MakeDevice(ListenAddress(interface, rank));
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(timeout);  // that of the pairs
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) transportContext_->createPair(peer);
    }
  }

  // What the others need to know; bytes.
  std::string Addresses() {
    std::vector<std::string> addresses;
    for (int peer = 0; peer < size; ++peer) {
      // There is no pair with oneself; any other keeps its place.
      const int shown = peer != rank ? peer : peer == 0 ? 1 : 0;
      const std::vector<char> bytes = getPair(shown)->address().bytes();
      addresses.emplace_back(bytes.begin(), bytes.end());
    }
    return PackAddresses(addresses);
  }

  // Connects to `peer`; `theirs` are its Addresses(). REQUIRES that every rank connects to its peers
  // in ascending order, so that ranks never wait for each other in a circle.
  void Connect(int peer, const std::string& theirs) {
    const std::string address = UnpackAddress(theirs, static_cast<std::size_t>(rank));
    getPair(peer)->connect({address.begin(), address.end()});
  }
};

}  // namespace

Mesh::Mesh(const sdk::Host& host, const sdk::CommParams& params, const interfaces::Interface& interface)
    : host_(host), members_(params), said_goodbye_(static_cast<std::size_t>(params.size)) {
  if (size() == 1) {
    places_.push_back(interface.address);
    return;
  }
  timer_ = std::make_unique<Timer>(host);
  const NoSigpipe quiet;
  const sdk::Deadline deadline(params.timeout);
  Connect(interface, deadline);
  Watch(interface);
  AwaitAll(params.timeout, deadline);
}

Mesh::~Mesh() {
  if (monitor_ != nullptr) monitor_->Stop();
}

std::string Mesh::PeerText(int peer) const {
  if (peer < 0) return "another rank";
  return "rank " + std::to_string(peer) + " (" + places_[static_cast<std::size_t>(peer)] + ")";
}

void Mesh::Connect(const interfaces::Interface& interface, const sdk::Deadline& deadline) {
  int peer = -1;  // none in particular
  try {
    // Gloo waits five times its timeout for a connection, and for ever with a timeout of 0.
    const auto limit =
        deadline.never() ? milliseconds(0) : std::max(deadline.LeftMilliseconds() / 5, milliseconds(1));
    const auto wired = std::make_shared<Wired>(rank(), size(), interface, limit);
    const std::vector<std::string> said = members_.Exchange(
        "place", interface.address + ", pid " + std::to_string(getpid()) + '\n' + wired->Addresses(),
        deadline);
    for (const std::string& one : said) places_.push_back(one.substr(0, one.find('\n')));
    for (peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const std::string& theirs = said[static_cast<std::size_t>(peer)];
      wired->Connect(peer, theirs.substr(theirs.find('\n') + 1));
    }
    context_ = wired;
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    const bool late = !deadline.never() && deadline.Left().count() == 0;
    throw Failure(late ? DTRUN_TIMEOUT : DTRUN_REMOTE_FAILURE,
                  "could not connect " + interface.Text() + " to " + PeerText(peer) + " for '" + name() +
                      "': " + WithoutPlace(error.what()) +
                      "; check that the hosts reach each other there, or set backend.options.interface",
                  peer)
        .Vendor("gloo", 0);
  }
}

// Starts to watch each connection for its end.
void Mesh::Watch(const interfaces::Interface& interface) {
  goodbyes_.resize(static_cast<std::size_t>(size()));
  try {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const auto index = static_cast<std::size_t>(peer);
      goodbyes_[index] = context_->createUnboundBuffer(nullptr, 0);
      goodbyes_[index]->recv(peer, MakeSlot(SlotUse::kGoodbye), 0, 0);
    }
    monitor_ = std::make_unique<Monitor>(host_, *this);
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(DTRUN_REMOTE_FAILURE, "a connection of '" + name() + "' on " + interface.Text() +
                                            " broke at once: " + WithoutPlace(error.what()))
        .Vendor("gloo", 0);
  }
  monitor_->Start();
}

// A barrier. After it every rank hears when another leaves, because none returns before all watch.
void Mesh::AwaitAll(sdk::Nanoseconds timeout, const sdk::Deadline& deadline) {
  Operation operation("joining '" + name() + "'", timeout);
  const TimerEntry entry(*timer_, deadline, [&] { FailTimeout(operation); });
  dtrun_op barrier;
  DTRUN_INIT(barrier);
  barrier.kind = DTRUN_BARRIER;
  MeshMessenger messenger(*this);
  messenger.Begin(operation, barrier);
  algorithms::RunCollective(messenger, barrier);
}

void Mesh::ThrowCause() const {
  Report();
  {
    std::unique_lock lock(mutex_);
    published_changed_.wait_for(lock, kPublishLimit, [this] { return published_; });
    published_ = true;  // one wait is enough
  }
  throw Failure(*failure_);
}

// A failure that another rank published is reported by the call that it ends, if there is one.
void Mesh::Fail(const Failure& failure, bool theirs) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    published_ = monitor_ == nullptr;
    failure_.Set(failure);
  }
  if (!theirs) Report();
  {
    const std::lock_guard lock(mutex_);
    for (Transfer* transfer : transfers_) transfer->Interrupt();
  }
  if (monitor_ != nullptr) monitor_->Wake();
}

void Mesh::Report() const {
  if (failure_->code() == DTRUN_REMOTE_FAILURE && !reported_.exchange(true))
    sdk::Health(host_).ReportPeer(members_.kv(), failure_->peer(), failure_->what());
}

void Mesh::FailTimeout(const Operation& operation) {
  const int waiting_for = operation.waiting_for.load(std::memory_order_relaxed);
  const int awaited = waiting_for == Operation::kAnyone ? -1 : waiting_for;
  std::string text = operation.text + " timed out after " + sdk::DurationText(operation.timeout);
  if (awaited >= 0) {
    text += " waiting for " + PeerText(awaited) + "; look at what that rank is doing";
  } else if (waiting_for == Operation::kAnyone) {
    text += "; no rank has sent such a message";
  } else {
    text += " behind an earlier call that has not finished";
  }
  Fail(Failure(DTRUN_TIMEOUT, text, awaited));
}

void Mesh::FailLost(int peer, const std::string& what) {
  if (failure_) return;
  const std::string who = PeerText(peer);
  if (SaidGoodbye(peer)) {
    return Fail(Failure(DTRUN_REMOTE_FAILURE, who + " left '" + name() + "' without making this call", peer));
  }
  try {
    if (const auto theirs = members_.FailureOfAnother()) return Fail(*theirs, true);
  } catch (const Failure& failure) {
    sdk::Log(host_, "gloo").Debug(std::string("why a rank left is unknown: ") + failure.what());
  }
  const bool closed = what.find("closed by peer") != std::string::npos ||
                      what.find("reset by peer") != std::string::npos ||
                      what.find("Broken pipe") != std::string::npos;
  Fail(Failure(DTRUN_REMOTE_FAILURE,
               "connection to " + who +
                   (closed ? " was closed: it exited or was killed" : " failed: " + WithoutPlace(what)),
               peer));
}

void Mesh::FailUnknownLost(const std::string& what) {
  {
    std::unique_lock lock(mutex_);
    if (published_changed_.wait_for(lock, kBrokenLinkLimit, [this] { return static_cast<bool>(failure_); }))
      return;
  }
  Fail(Failure(DTRUN_REMOTE_FAILURE, "a connection of '" + name() + "' failed: " + WithoutPlace(what)));
}

bool Mesh::SaidGoodbye(int peer) {
  const std::lock_guard lock(goodbyes_mutex_);
  const auto index = static_cast<std::size_t>(peer);
  std::optional<bool>& said = said_goodbye_[index];
  if (!said) {
    try {
      // It has come, or the broken connection ends the wait; the limit is for a connection
      // that broke inside the message.
      said = goodbyes_[index]->waitRecv(nullptr, kBrokenLinkLimit);
    } catch (const std::exception&) {
      said = false;
    }
  }
  return *said;
}

void Mesh::PublishFailure() {
  try {
    members_.PublishFailure(*failure_);
  } catch (const Failure& failure) {
    // The others will see this rank's connections close without knowing why.
    sdk::Log(host_, "gloo").Debug(std::string("could not tell the other ranks why: ") + failure.what());
  }
  {
    const std::lock_guard lock(mutex_);
    published_ = true;
  }
  published_changed_.notify_all();
}

void Mesh::Register(Transfer* transfer) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      transfers_.insert(transfer);
      return;
    }
  }
  ThrowCause();
}

void Mesh::Unregister(Transfer* transfer) {
  const std::lock_guard lock(mutex_);
  transfers_.erase(transfer);
}

}  // namespace dtrun::gloo_plugin
