// A rank of `dtrun bench` that calls Gloo directly, over TCP: on the loopback interface, or the one
// that GLOO_SOCKET_IFNAME names, as for torch.distributed.
//
//   raw_gloo SOCKET FOLDER    ranks find each other through files in FOLDER; dtrun starts it
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "core/contract/environment.h"
#include "dtrun/abi/types.h"
#include "tools/bench/program/peer.h"

namespace dtrun::bench {
namespace {

std::string Interface() {
  const char* name = std::getenv("GLOO_SOCKET_IFNAME");
  return name == nullptr ? "lo" : name;
}

using Reduction = void (*)(void*, const void*, const void*, std::size_t);

template <class T>
Reduction SumOf() {
  return static_cast<Reduction>(&gloo::sum<T>);
}

Reduction SumFor(const Element& element) {
  switch (element.dtype) {
    case DTRUN_FLOAT16: return SumOf<gloo::float16>();
    case DTRUN_FLOAT32: return SumOf<float>();
    case DTRUN_FLOAT64: return SumOf<double>();
    case DTRUN_INT8: return SumOf<std::int8_t>();
    case DTRUN_INT32: return SumOf<std::int32_t>();
    case DTRUN_INT64: return SumOf<std::int64_t>();
    case DTRUN_UINT8: return SumOf<std::uint8_t>();
    case DTRUN_UINT64: return SumOf<std::uint64_t>();
    default: throw Unsupported(std::string("Gloo has no sum of ") + element.name);
  }
}

class GlooPeer : public Peer {
 public:
  explicit GlooPeer(const char* folder)
      : rank_(RankVariable(contract::kRank)), ranks_(RankVariable(contract::kWorldSize)) {
    gloo::transport::tcp::attr attributes;
    attributes.iface = Interface();
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
    context->setTimeout(std::chrono::seconds(60));
    gloo::rendezvous::FileStore store(folder);
    context->connectFullMesh(store, device);
    context_ = std::move(context);
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string description() const override { return "Gloo (" GLOO_FILE "), tcp on " + Interface(); }

  void Run(const Call& call) override {
    switch (call.operation) {
      case Operation::kAllreduce: return Allreduce(call);
      case Operation::kReduce: return Reduce(call);
      case Operation::kBroadcast: return Broadcast(call);
      case Operation::kAllgather: return Gather<gloo::AllgatherOptions>(call, &gloo::allgather);
      case Operation::kAlltoall: return Gather<gloo::AlltoallOptions>(call, &gloo::alltoall);
      case Operation::kSendrecv: return Exchange(call);
      case Operation::kBarrier: return Barrier();
      case Operation::kReduceScatter:
      case Operation::kCopy: break;
    }
    throw Unsupported("Gloo has no blocking reduce_scatter of this form");
  }

  void Barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

 private:
  // Options derive sizes from typed pointers; the reduction defines the arithmetic. Operations without a
  // reduction could use bytes.
  template <class Body>
  static void Typed(const Call& call, Body&& body) {
    switch (call.element.size) {
      case 1: return body(static_cast<std::uint8_t*>(call.send), static_cast<std::uint8_t*>(call.recv));
      case 2: return body(static_cast<std::uint16_t*>(call.send), static_cast<std::uint16_t*>(call.recv));
      case 4: return body(static_cast<std::uint32_t*>(call.send), static_cast<std::uint32_t*>(call.recv));
      default: return body(static_cast<std::uint64_t*>(call.send), static_cast<std::uint64_t*>(call.recv));
    }
  }

  void Allreduce(const Call& call) {
    gloo::AllreduceOptions options(context_);
    options.setReduceFunction(SumFor(call.element));
    Typed(call, [&](auto* send, auto* recv) {
      options.setInput(send, call.shape.count);
      options.setOutput(recv, call.shape.count);
    });
    gloo::allreduce(options);
  }

  void Reduce(const Call& call) {
    gloo::ReduceOptions options(context_);
    options.setReduceFunction(SumFor(call.element));
    options.setRoot(kRoot);
    Typed(call, [&](auto* send, auto* recv) {
      options.setInput(send, call.shape.count);
      options.setOutput(recv, call.shape.count);
    });
    gloo::reduce(options);
  }

  void Broadcast(const Call& call) {
    gloo::BroadcastOptions options(context_);
    options.setRoot(kRoot);
    Typed(call, [&](auto*, auto* recv) { options.setOutput(recv, call.shape.count); });
    gloo::broadcast(options);
  }

  template <class Options, class Function>
  void Gather(const Call& call, Function* function) {
    Options options(context_);
    Typed(call, [&](auto* send, auto* recv) {
      options.setInput(send, call.shape.send);
      options.setOutput(recv, call.shape.recv);
    });
    function(options);
  }

  void Exchange(const Call& call) {
    const auto send = context_->createUnboundBuffer(call.send, call.shape.bytes);
    const auto recv = context_->createUnboundBuffer(call.recv, call.shape.bytes);
    recv->recv((rank_ + ranks_ - 1) % ranks_, kExchange);
    send->send((rank_ + 1) % ranks_, kExchange);
    send->waitSend();
    recv->waitRecv();
  }

  static constexpr std::uint64_t kExchange = 1;  // Gloo's own operations use the upper byte

  int rank_, ranks_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace dtrun::bench

int main(int argc, char** argv) {
  return dtrun::bench::ServeAsRank(argc, argv, [](int count, char** rest) -> dtrun::bench::Peer* {
    if (count != 1) throw std::runtime_error("expected a socket and a folder");
    return new dtrun::bench::GlooPeer(rest[0]);
  });
}
