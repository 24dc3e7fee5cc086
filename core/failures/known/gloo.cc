#include "core/failures/known/tables.h"

namespace dtrun::failures {
namespace {

using known::Depth;
using known::Kind;

constexpr KnownFailure kGlooTable[] = {
    {"gloo-connect",
     {"connectFullMesh failed with {reason...}", "connect [{address}]:{port}: {reason...}",
      "Connect timeout [{address}]:{port}"},
     "gloo cannot connect to a peer[ at {address}, port {port}][: {reason}]",
     "set backend.options.interface, or GLOO_SOCKET_IFNAME, to an interface that the peers reach; an address "
     "127.x.x.x is the host's own name in /etc/hosts",
     "gloo transport/tcp/pair.cc, pytorch issue 15592",
     Depth::kCause,
     Kind::kNetwork},
    {"gloo-interface",
     {"Unable to find address for: {interface}", "Unable to find interface for: {interface}",
      "Unable to find address for {interface}"},
     "gloo finds no network interface '{interface}' with an address on this host",
     "correct backend.options.interface, or GLOO_SOCKET_IFNAME: exact names, separated by commas, without "
     "NCCL's ^ and =",
     "gloo transport/tcp/device.cc, aws-do-eks issue 51"},
    {"gloo-sizes-differ",
     {"op.preamble.length <= op.nbytes. {got} vs {expected}"},
     "ranks called different collectives, or with different sizes: {got} bytes came where {expected} were "
     "expected",
     "compare calls.txt of the run directory, or set TORCH_DISTRIBUTED_DEBUG=DETAIL in job.env",
     "gloo transport/tcp/pair.cc"},
    {"gloo-store-timeout",
     {"Wait timeout for key(s): {keys...}", "RuntimeError: Wait timeout"},
     "a rank never came[: it did not publish {keys}]",
     "look at the first failure of another rank",
     "gloo rendezvous, Horovod",
     Depth::kSymptom,
     Kind::kRendezvous},
    {"gloo-type",
     {"RuntimeError: Invalid scalar type"},
     "gloo cannot reduce this element type, bfloat16 for example",
     "reduce in float32, or use dtrun's own torch layer, which can",
     "c10d ProcessGroupGloo, pytorch 111131"},
    {"gloo-operation",
     {"ProcessGroupGloo does not support {operation}", "Backend gloo does not support {operation}"},
     "torch's gloo has no {operation}",
     "use another operation (allreduce instead of reduce_scatter), or backend nccl or mpi in torch",
     "c10d, pytorch issue 149869"},
    {"gloo-timeout",
     {"Timed out waiting {time} for {operation} operation to complete"},
     "a peer did not come to the call within {time}: its part of this {operation} is missing",
     "look at what the other ranks did; when one of them is only late, give "
     "init_process_group(timeout=...) more",
     "gloo transport/tcp/unbound_buffer.cc",
     Depth::kSymptom,
     Kind::kNetwork},
    {"gloo-peer-closed",
     {"transport/tcp/pair.cc:{line}] Connection closed by peer [{address}]:{port}",
      "transport/tcp/pair.cc:{line}] Connection closed by peer",
      "Connection closed by peer [{address}]:{port}", "Application timeout caused pair closure"},
     "a peer[ at {address}] ended, or gave up",
     "look at the first failure of another rank",
     "gloo transport/tcp/pair.cc",
     Depth::kSymptom,
     Kind::kNetwork},
    {"gloo-connection-lost",
     {"Read error [{address}]:{port}: {reason...}", "writev [{address}]:{port}: {reason...}",
      "Read timeout [{address}]:{port}", "Write timeout [{address}]:{port}"},
     "the connection to a peer at {address} broke[: {reason}]",
     "look at the first failure of another rank",
     "gloo transport/tcp/pair.cc",
     Depth::kSymptom,
     Kind::kNetwork},
};

}  // namespace

std::span<const KnownFailure> GlooFailures() { return kGlooTable; }

}  // namespace dtrun::failures
