// A backend that moves the fake accelerator's memory, as a library for devices does: what is enqueued runs on
// the given stream, over the example's TCP, and the host waits for nothing.
//
// Collectives run in the order of their calls whatever their streams, each on its stream's thread.
#include <condition_variable>
#include <mutex>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/collectives.hpp"
#include "dtrun/plugin/op.hpp"
#include "links.h"
#include "sdk/fake/accelerator.h"

namespace dtrun::fake {
namespace {

Stream& StreamOf(const dtrun_stream& stream) {
  return stream.native != nullptr ? *static_cast<Stream*>(stream.native)
                                  : default_stream(stream.device_index);
}

// One operation's end, shared by its request and its task.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  sdk::FirstFailure failure;
  Event event;  // recorded behind the operation

  void End() {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
};

class Request final : public sdk::Request {
 public:
  explicit Request(std::shared_ptr<Outcome> outcome) : outcome_(std::move(outcome)) {}
  ~Request() override {
    std::unique_lock lock(outcome_->mutex);
    outcome_->changed.wait(lock, [&] { return outcome_->done; });
  }
  bool Test() override { return Wait(sdk::Nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override {
    const sdk::Deadline patience(timeout);
    std::unique_lock lock(outcome_->mutex);
    while (!outcome_->done) {
      if (patience.passed()) return false;
      outcome_->changed.wait_until(lock, patience.Soon(std::chrono::hours(1)));
    }
    outcome_->failure.ThrowIfSet();
    return true;
  }
  void WaitStream(const dtrun_stream& stream) override { outcome_->event.block(StreamOf(stream)); }

 private:
  std::shared_ptr<Outcome> outcome_;
};

class Communicator final : public sdk::Communicator<Request>, private algorithms::Messenger {
 public:
  Communicator(const sdk::Host& host, const sdk::CommParams& params)
      : links_(host, params), collectives_(host, *this) {}
  ~Communicator() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queued_ == 0; });
  }

  std::unique_ptr<Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override {
    links_.ThrowIfFailed();
    if (stream == nullptr) throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "the fake backend needs a stream");
    Stream& on = StreamOf(*stream);
    auto outcome = std::make_shared<Outcome>();
    const bool collective = sdk::IsCollective(op.kind);
    std::uint64_t turn = 0;
    {
      const std::lock_guard lock(mutex_);
      ++queued_;
      if (collective) turn = given_++;
    }
    auto copy = std::make_shared<const Copy>(op, size());
    on.post([=, this] {
      if (collective) Await(turn);
      try {
        links_.ThrowIfFailed();
        collective ? RunCollective(copy->op) : RunMessage(copy->op);
      } catch (const sdk::Failure& failure) {
        outcome->failure.Set(failure);
        links_.Fail(failure);
      }
      outcome->End();
      const std::lock_guard lock(mutex_);
      --queued_;
      if (collective) ++turn_;
      changed_.notify_all();
    });
    outcome->event.record(on);
    if ((op.flags & DTRUN_OP_DETACHED) != 0) return nullptr;
    return std::make_unique<Request>(std::move(outcome));
  }
  void Abort(const std::string& reason) override { links_.Fail(sdk::Failure(DTRUN_ABORTED, reason)); }

 private:
  // The arrays of an operation are read during Enqueue only.
  struct Copy {
    Copy(const dtrun_op& given, int size) : op(given) {
      const auto keep = [&](const std::uint64_t*& array) {
        if (array == nullptr) return;
        kept.push_back(std::make_unique<std::vector<std::uint64_t>>(array, array + size));
        array = kept.back()->data();
      };
      keep(op.send_counts);
      keep(op.send_offsets);
      keep(op.recv_counts);
      keep(op.recv_offsets);
      op.flags = 0;
    }
    dtrun_op op;
    std::vector<std::unique_ptr<std::vector<std::uint64_t>>> kept;
  };

  void Await(std::uint64_t turn) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == turn; });
  }
  void RunMessage(const dtrun_op& op) {
    const sdk::Inbox::Label label{op.tag, op.count * kernels::ElementBytes(op.dtype)};
    if (op.kind == DTRUN_SEND) return links_.Send(op.peer, label, op.send);
    links_.Receive(op.peer, label, op.recv, sdk::Deadline(sdk::Nanoseconds(op.timeout_ns)))
        ->Wait(sdk::kNoLimit);
  }
  void RunCollective(const dtrun_op& op) {
    key_ = std::uint64_t{1} << 32 | (op.sequence & 0xffffffff);  // no tag of a message
    deadline_ = sdk::Deadline(sdk::Nanoseconds(op.timeout_ns));
    receives_.clear();
    collectives_.Run(op);
  }

  // The messages of the collective that runs.
  int rank() const override { return links_.members().rank(); }
  int size() const override { return links_.members().size(); }
  Message Send(int peer, const void* data, std::size_t bytes) override {
    links_.Send(peer, {key_, bytes}, data);
    return nullptr;
  }
  Message Recv(int peer, void* data, std::size_t bytes) override {
    receives_.push_back(links_.Receive(peer, {key_, bytes}, data, deadline_));
    return receives_.back().get();
  }
  void Wait(Message message) override { static_cast<sdk::Inbox::Receive*>(message)->Wait(sdk::kNoLimit); }
  void Cancel() noexcept override {
    links_.Fail(sdk::Failure(DTRUN_INTERNAL, "a collective has failed"));
    receives_.clear();  // which waits for their end
  }

  tcp::Links links_;
  std::uint64_t key_ = 0;
  sdk::Deadline deadline_;
  std::vector<std::unique_ptr<sdk::Inbox::Receive>> receives_;
  sdk::Collectives collectives_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t queued_ = 0;            // tasks that have not ended
  std::uint64_t given_ = 0, turn_ = 0;  // of collectives
};

class Backend final : public sdk::Backend<Communicator> {
 public:
  Backend(const sdk::Host& host, const sdk::Options&) : host_(host) {}
  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.device_kinds = sdk::Bits({DTRUN_DEVICE_OTHER});
    caps.detached = true;
    return caps;
  }
  std::unique_ptr<Communicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<Communicator>(host_, params);
  }
  void LaunchInfo(const dtrun_launch_query&, const sdk::LaunchSink& sink) override {
    sink.Fact("memory", "device");
  }

 private:
  const sdk::Host host_;
};

}  // namespace
}  // namespace dtrun::fake

DTRUN_SDK_PLUGIN(dtrun::fake::Backend, .name = "fake", .version = "1.0", .vendor = "dtrun tests",
                 .license = "Apache-2.0", .summary = "operations on the fake accelerator's streams, over TCP")
