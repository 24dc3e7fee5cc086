// A rank of `dtrun bench` that calls MPI directly. Started by mpirun.
#include <mpi.h>

#include <limits>

#include "dtrun/abi/types.h"
#include "tools/bench/program/peer.h"

namespace dtrun::bench {
namespace {

MPI_Datatype TypeOf(const Element& element) {
  switch (element.dtype) {
    case DTRUN_FLOAT32: return MPI_FLOAT;
    case DTRUN_FLOAT64: return MPI_DOUBLE;
    case DTRUN_INT8: return MPI_INT8_T;
    case DTRUN_INT16: return MPI_INT16_T;
    case DTRUN_INT32: return MPI_INT32_T;
    case DTRUN_INT64: return MPI_INT64_T;
    case DTRUN_UINT8: return MPI_UINT8_T;
    case DTRUN_UINT16: return MPI_UINT16_T;
    case DTRUN_UINT32: return MPI_UINT32_T;
    case DTRUN_UINT64: return MPI_UINT64_T;
    default: throw Unsupported(std::string("MPI has no type for ") + element.name);
  }
}

// Counts of MPI before version 4 are int.
int CountOf(const Call& call) {
  if (call.shape.count > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    throw Unsupported("more elements than MPI counts");
  return static_cast<int>(call.shape.count);
}

class MpiPeer : public Peer {
 public:
  MpiPeer() {
    MPI_Init(nullptr, nullptr);  // errors are fatal, and explained by MPI
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~MpiPeer() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::string description() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, static_cast<std::size_t>(length));
    return whole.substr(0, whole.find_first_of(",\n"));
  }

  void Run(const Call& call) override {
    if (call.operation == Operation::kBarrier) return Barrier();
    const MPI_Datatype type = TypeOf(call.element);
    const int n = CountOf(call);
    const MPI_Comm world = MPI_COMM_WORLD;
    const int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
    switch (call.operation) {
      case Operation::kAllreduce: MPI_Allreduce(call.send, call.recv, n, type, MPI_SUM, world); return;
      case Operation::kReduce: MPI_Reduce(call.send, call.recv, n, type, MPI_SUM, kRoot, world); return;
      case Operation::kBroadcast: MPI_Bcast(call.recv, n, type, kRoot, world); return;
      case Operation::kAllgather: MPI_Allgather(call.send, n, type, call.recv, n, type, world); return;
      case Operation::kReduceScatter:
        MPI_Reduce_scatter_block(call.send, call.recv, n, type, MPI_SUM, world);
        return;
      case Operation::kAlltoall: MPI_Alltoall(call.send, n, type, call.recv, n, type, world); return;
      case Operation::kSendrecv:
        MPI_Sendrecv(call.send, n, type, next, 0, call.recv, n, type, previous, 0, world, MPI_STATUS_IGNORE);
        return;
      case Operation::kBarrier:
      case Operation::kCopy: break;
    }
    throw Unsupported("MPI has no such operation");
  }

  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  int rank_ = 0, ranks_ = 1;
};

}  // namespace
}  // namespace dtrun::bench

int main(int argc, char** argv) {
  return dtrun::bench::ServeAsRank(
      argc, argv, [](int, char**) -> dtrun::bench::Peer* { return new dtrun::bench::MpiPeer; });
}
