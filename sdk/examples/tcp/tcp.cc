// tcp.cc - a backend over TCP: messages by links.h, collectives over them by the host's algorithms.
#include "dtrun/kernels.hpp"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/call_queue.hpp"
#include "dtrun/plugin/collectives.hpp"
#include "dtrun/plugin/op.hpp"
#include "links.h"

namespace tcp {

class Communicator final : public sdk::Communicator<sdk::Request>,
                           private sdk::Runner,
                           private dtrun::algorithms::Messenger {
 public:
  Communicator(const sdk::Host& host, const sdk::CommParams& params)
      : links_(host, params), collectives_(host, *this), calls_(host, *this, "tcp-calls", params.size) {}

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream*) override {
    links_.ThrowIfFailed();
    if (sdk::IsCollective(op.kind)) return calls_.Enqueue(op);
    const sdk::Inbox::Label label{op.tag, op.count * dtrun::kernels::ElementBytes(op.dtype)};
    if (op.kind == DTRUN_RECV) {
      return links_.Receive(op.peer, label, op.recv, sdk::Deadline(sdk::Nanoseconds(op.timeout_ns)));
    }
    links_.Send(op.peer, label, op.send);
    return nullptr;
  }
  void Abort(const std::string& reason) override { links_.Fail(sdk::Failure(DTRUN_ABORTED, reason)); }

 private:
  // One collective after another, on a thread of the queue or of the caller.
  void Run(sdk::Running& running) override {
    links_.ThrowIfFailed();
    key_ = std::uint64_t{1} << 32 | (running.op->sequence & 0xffffffff);  // no tag of a message
    deadline_ = running.deadline.Start();
    receives_.clear();
    collectives_.Run(*running.op);
  }
  void Abandon(const sdk::Running&) override {
    links_.Fail(sdk::Failure(DTRUN_TIMEOUT, "timed out behind a call that has not finished"));
  }

  // The messages of that collective.
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

  Links links_;
  std::uint64_t key_ = 0;
  sdk::Deadline deadline_;
  std::vector<std::unique_ptr<sdk::Inbox::Receive>> receives_;  // of the collective that runs
  sdk::Collectives collectives_;
  sdk::CallQueue calls_;
};

class Backend final : public sdk::Backend<Communicator> {
 public:
  Backend(const sdk::Host& host, const sdk::Options&) : host_(host) {}
  sdk::Caps QueryCaps() const override { return sdk::Caps::Everything(); }
  std::unique_ptr<Communicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<Communicator>(host_, params);
  }

 private:
  const sdk::Host host_;
};

}  // namespace tcp

DTRUN_SDK_PLUGIN(tcp::Backend, "tcp", "1.0", "dtrun examples", "Apache-2.0", "messages and collectives over TCP")
