#include "core/diagnosis/known/tables.h"

namespace dtrun::diagnosis {
namespace {

using known::Depth;
using known::Kind;

constexpr KnownFailure kTable[] = {
    {"ucx-cuda-ipc",
     {"cuIpcOpenMemHandle() failed: {reason...}",
      "failed to open ipc mem handle. addr:{addr} len:{bytes} ({reason...}"},
     "UCX cannot open another GPU's memory (cuda_ipc): {reason}",
     "set backend.options.p2p = \"off\" of ucx, or UCX_TLS=^cuda_ipc",
     "UCX uct/cuda/cuda_ipc/cuda_ipc_cache.c, pull request 6360",
     Depth::kCause,
     Kind::kUnsaid,
     known::kCudaIpc},
    {"ucx-device",
     {"network device {device} is not available, please use one or more of: {devices...}",
      "network devices {device} are not available, please use one or more of: {devices...}"},
     "UCX knows no network device {device}; this host has {devices}",
     "correct backend.options.devices, or UCX_NET_DEVICES; until UCX 1.20 it goes on without a network",
     "UCX ucp_context.c"},
    {"ucx-no-transport",
     {"no usable transports/devices (asked {asked})", "no active messages transport to {peer}: {reason...}"},
     "UCX has no transport to a peer[: {reason}][: none of {asked} is here]",
     "set backend.options.transports to what both hosts have (tcp, sm, self), and unset UCX_TLS",
     "UCX ucp_context.c, select.c",
     Depth::kCause,
     Kind::kNetwork},
    {"ucx-memlock",
     {"Please set max locked memory (ulimit -l) to 'unlimited' (current: {current} kbytes)"},
     "RDMA may lock only {current} kbytes of memory",
     "raise the limit: `ulimit -l unlimited` where dtrun starts, LimitMEMLOCK=infinity for a service, "
     "--ulimit memlock=-1 for a container",
     "UCX uct_ib"},
    {"ucx-shm-full",
     {"Not enough memory to write total of {bytes} bytes. Please check that /dev/shm",
      "please check shared memory limits by 'ipcs -l'"},
     "/dev/shm or the System V limits have no room for UCX[: {bytes} bytes]",
     "give the container a larger /dev/shm (--shm-size), or set UCX_POSIX_DIR in job.env to a folder with "
     "room",
     "UCX mm_posix.c, ucs/sys"},
    {"ucx-open-files",
     {"the maximal number of files that could be opened simultaneously was reached"},
     "this process may open no more files",
     "raise `ulimit -n` where dtrun starts",
     "UCX"},
    {"ucx-retries",
     {"Transport retry count exceeded on {device}", "Transport retry  count exceeded on {device}"},
     "an RDMA peer does not answer on {device}",
     "check cables, switch and GID (UCX_IB_GID_INDEX); backend.options.transports = \"tcp,sm,self\" goes "
     "without",
     "UCX uct_ib",
     Depth::kCause,
     Kind::kNetwork},
    {"ucx-tcp-retries",
     {"reached maximum number of connection retries ({count})"},
     "UCX tried {count} times to connect to a peer over TCP",
     "set backend.options.devices to an interface that the peers reach; with very many ranks raise "
     "net.core.somaxconn",
     "UCX tcp_ep.c",
     Depth::kCause,
     Kind::kNetwork},
    {"ucx-unreachable",
     {"Destination is unreachable"},
     "UCX reaches no peer with the transports and devices it has",
     "set backend.options.devices to an interface that the peers reach",
     "UCX",
     Depth::kSymptom,
     Kind::kNetwork},
    {"ucx-peer-lost",
     {"Connection reset by remote peer", "Endpoint timeout", "connection was dropped by the peer",
      "connection was closed by the peer"},
     "a peer of UCX ended, or the network to it broke",
     "look at the first failure of another rank",
     "UCX",
     Depth::kSymptom,
     Kind::kNetwork},
    {"ucx-signal",
     {"Caught signal {signal} ({what}: ", "Caught signal {signal} ({what})"},
     "the process crashed with signal {signal} ({what}), and UCX printed it",
     "read the backtrace that follows; UCX_ERROR_SIGNALS= in job.env leaves the signal to others",
     "UCX debug.c",
     Depth::kSymptom},
};

}  // namespace

std::span<const KnownFailure> UcxFailures() { return kTable; }

}  // namespace dtrun::diagnosis
