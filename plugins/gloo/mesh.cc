#include "mesh.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <sstream>
#include <utility>

#include "collective.h"
#include "monitor.h"
#include "signals.h"
#include "timer.h"
#include "transfer.h"
#include "wiring.h"

namespace dtrun::gloo_plugin {
namespace {

using sdk::Failure;
using std::chrono::milliseconds;

// How long a failure waits for its announcement to the other ranks.
constexpr milliseconds kPublishLimit{500};
// How long the end of a broken connection may take to be noticed.
constexpr milliseconds kBrokenLinkLimit{5000};

std::string AliveKey(int rank) { return "alive/" + std::to_string(rank); }
std::string PartingKey(int rank) { return "parting/" + std::to_string(rank); }

Parting PartingFor(const Cause& cause) {
  switch (cause.code) {
    case DTRUN_TIMEOUT: return {Parting::kTimeout, cause.awaited};
    case DTRUN_ABORTED: return {Parting::kAborted, -1};
    case DTRUN_REMOTE_FAILURE: return {Parting::kLostPeer, cause.peer};
    default: return {Parting::kOther, -1};
  }
}

std::string Joined(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (const int rank : ranks) {
    text += rank == ranks.front() ? " " : ", ";
    text += std::to_string(rank);
  }
  return text;
}

// Gloo puts "[file:line] " in front of its texts.
std::string WithoutPlace(const std::string& what) {
  const std::size_t end = what.find("] ");
  return !what.empty() && what[0] == '[' && end != std::string::npos ? what.substr(end + 2) : what;
}

}  // namespace

Mesh::Mesh(const sdk::Host& host, const sdk::CommParams& params, const interfaces::Interface& interface)
    : host_(host),
      rank_(params.rank),
      size_(params.size),
      name_(params.name),
      kv_(params.kv),
      goodbye_states_(static_cast<std::size_t>(params.size), Goodbye::kUnread) {
  if (size_ == 1) {
    places_.push_back(interface.address);
    return;
  }
  timer_ = std::make_unique<Timer>(host);
  const NoSigpipe quiet;
  const sdk::Deadline deadline(params.timeout);
  Connect(params, interface, deadline);
  Meet(params, interface, deadline);
}

Mesh::~Mesh() {
  if (monitor_ != nullptr) monitor_->Stop();
}

std::string Mesh::PeerText(int peer) const {
  if (peer < 0) return "another rank";
  return "rank " + std::to_string(peer) + " (" + places_[static_cast<std::size_t>(peer)] + ")";
}

// Announces this rank, waits until all others have done so, so that a missing one is named, and
// returns what they said: place, newline, addresses.
std::vector<std::string> Mesh::Gather(const sdk::CommParams& params, const std::string& announcement,
                                      const sdk::Deadline& deadline) {
  params.kv.Set(AliveKey(rank_), announcement);
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(AliveKey(rank));
  try {
    params.kv.WaitMany(keys, deadline.Left());
  } catch (const Failure& failure) {
    if (failure.code() != DTRUN_TIMEOUT) throw;
    std::vector<int> missing;
    for (int rank = 0; rank < size_; ++rank) {
      if (!params.kv.TryGet(AliveKey(rank))) missing.push_back(rank);
    }
    if (missing.empty()) throw;
    throw Failure(DTRUN_TIMEOUT,
                  Joined(missing) + " of " + std::to_string(size_) + " did not join '" + name_ + "' within " +
                      sdk::DurationText(params.timeout) + "; look at the output of " + Joined(missing) +
                      ", or raise backend.timeout",
                  missing.front());
  }
  std::vector<std::string> said;
  for (const std::string& key : keys) said.push_back(params.kv.Get(key, deadline.Left()));
  return said;
}

void Mesh::Connect(const sdk::CommParams& params, const interfaces::Interface& interface,
                   const sdk::Deadline& deadline) {
  int peer = -1;  // none in particular
  try {
    // Gloo waits five times its timeout for a connection, and for ever with a timeout of 0.
    const auto limit =
        deadline.never() ? milliseconds(0) : std::max(deadline.LeftMilliseconds() / 5, milliseconds(1));
    Wiring wiring(rank_, size_, interface, limit);
    const std::vector<std::string> said =
        Gather(params, interface.address + ", pid " + std::to_string(getpid()) + '\n' + wiring.Addresses(),
               deadline);
    for (const std::string& one : said) places_.push_back(one.substr(0, one.find('\n')));
    for (peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const std::string& theirs = said[static_cast<std::size_t>(peer)];
      wiring.Connect(peer, theirs.substr(theirs.find('\n') + 1));
    }
    context_ = wiring.context();
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    const bool late = !deadline.never() && deadline.Left().count() == 0;
    throw Failure(late ? DTRUN_TIMEOUT : DTRUN_REMOTE_FAILURE,
                  "could not connect " + interface.Text() + " to " + PeerText(peer) + " for '" + name_ +
                      "': " + WithoutPlace(error.what()) +
                      "; check that the hosts reach each other there, or set backend.options.interface",
                  peer)
        .Vendor("gloo", 0);
  }
}

// From here on every rank hears when another leaves. Nobody returns before all have come
// this far.
void Mesh::Meet(const sdk::CommParams& params, const interfaces::Interface& interface,
                const sdk::Deadline& deadline) {
  goodbyes_.resize(static_cast<std::size_t>(size_));
  try {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const auto index = static_cast<std::size_t>(peer);
      goodbyes_[index] = context_->createUnboundBuffer(nullptr, 0);
      goodbyes_[index]->recv(peer, MakeSlot(SlotUse::kGoodbye), 0, 0);
    }
    monitor_ = std::make_unique<Monitor>(host_, *this);
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(DTRUN_REMOTE_FAILURE, "a connection of '" + name_ + "' on " + interface.Text() +
                                            " broke at once: " + WithoutPlace(error.what()))
        .Vendor("gloo", 0);
  }
  monitor_->Start();
  Operation operation("joining '" + name_ + "'", params.timeout);
  const TimerEntry entry(*timer_, deadline, [&] { FailTimeout(operation); });
  DisseminationBarrier(*this, operation, MakeSlot(SlotUse::kMeeting));
}

void Mesh::ThrowIfFailed() const {
  if (failed()) ThrowCause();
}

void Mesh::ThrowCause() const {
  {
    std::unique_lock lock(mutex_);
    published_changed_.wait_for(lock, kPublishLimit, [this] { return published_; });
    published_ = true;  // one wait is enough
  }
  const std::optional<Cause> known = cause();
  if (!known) throw Failure(DTRUN_INTERNAL, "'" + name_ + "' failed for no known reason");
  throw Failure(known->code, known->text, known->peer);
}

std::optional<Cause> Mesh::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

void Mesh::Fail(const Cause& cause) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = cause;
    published_ = monitor_ == nullptr;
    failed_.store(true, std::memory_order_release);
  }
  // Core hears of it before any call returns it: its caller may exit at once.
  if (cause.code == DTRUN_REMOTE_FAILURE) sdk::Health(host_).ReportPeer(cause.peer, cause.text);
  {
    const std::lock_guard lock(mutex_);
    for (Transfer* transfer : transfers_) transfer->Interrupt();
  }
  if (monitor_ != nullptr) monitor_->Wake();
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
  Fail({DTRUN_TIMEOUT, text, awaited, awaited});
}

void Mesh::FailLost(int peer, const std::string& what) {
  if (failed()) return;
  const std::string who = PeerText(peer);
  const std::optional<Parting> parting = ReadParting(peer);
  if (!parting) {
    const bool closed = what.find("closed by peer") != std::string::npos ||
                        what.find("reset by peer") != std::string::npos ||
                        what.find("Broken pipe") != std::string::npos;
    return Fail({DTRUN_REMOTE_FAILURE,
                 "connection to " + who +
                     (closed ? " was closed: it exited or was killed" : " failed: " + WithoutPlace(what)),
                 peer, -1});
  }
  const std::string about = parting->about == rank_ ? "this rank" : PeerText(parting->about);
  switch (parting->kind) {
    case Parting::kDone:
      return Fail({DTRUN_REMOTE_FAILURE, who + " left '" + name_ + "' without making this call", peer, -1});
    case Parting::kTimeout:
      return Fail({DTRUN_REMOTE_FAILURE, who + " gave up '" + name_ + "': it timed out waiting for " + about,
                   peer, -1});
    case Parting::kAborted: return Fail({DTRUN_ABORTED, who + " aborted '" + name_ + "'", peer, -1});
    case Parting::kLostPeer:
      return Fail({DTRUN_REMOTE_FAILURE, who + " gave up '" + name_ + "': it lost " + about,
                   parting->about == rank_ || parting->about < 0 ? peer : parting->about, -1});
    default:
      return Fail(
          {DTRUN_REMOTE_FAILURE, who + " gave up '" + name_ + "' after an error of its own", peer, -1});
  }
}

void Mesh::FailSomebodyLost(const std::string& what) {
  {
    std::unique_lock lock(mutex_);
    if (published_changed_.wait_for(lock, kBrokenLinkLimit, [this] { return cause_.has_value(); })) return;
  }
  Fail({DTRUN_REMOTE_FAILURE, "a connection of '" + name_ + "' failed: " + WithoutPlace(what), -1, -1});
}

std::optional<Parting> Mesh::ReadParting(int peer) {
  const std::lock_guard lock(partings_mutex_);
  const auto index = static_cast<std::size_t>(peer);
  if (goodbye_states_[index] == Goodbye::kUnread) {
    goodbye_states_[index] = Goodbye::kNone;
    try {
      // It has come, or the broken connection ends the wait; the limit is for a connection
      // that broke inside the message.
      if (goodbyes_[index]->waitRecv(nullptr, kBrokenLinkLimit)) goodbye_states_[index] = Goodbye::kReceived;
    } catch (const std::exception&) {
      goodbye_states_[index] = Goodbye::kNone;  // no goodbye
    }
  }
  if (goodbye_states_[index] == Goodbye::kReceived) return Parting{};
  try {
    const std::optional<std::string> text = kv_.TryGet(PartingKey(peer));
    if (!text) return std::nullopt;
    std::istringstream fields(*text);
    Parting parting;
    fields >> parting.kind >> parting.about;
    if (!fields || parting.about < -1 || parting.about >= size_) return Parting{Parting::kOther, -1};
    return parting;
  } catch (const Failure& failure) {
    sdk::Log(host_, "gloo").Debug(std::string("why a rank left is unknown: ") + failure.what());
    return std::nullopt;
  }
}

void Mesh::PublishCause() {
  const Parting parting = PartingFor(cause().value_or(Cause{}));
  try {
    kv_.Set(PartingKey(rank_), std::to_string(parting.kind) + " " + std::to_string(parting.about));
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
    if (!cause_) {
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
