#include "core/failures/known/tables.h"

namespace dtrun::failures {
namespace {

using known::Depth;
using known::Kind;

constexpr KnownFailure kTorchStoreTable[] = {
    {"torch-port-in-use",
     {"The server socket has failed to bind to {address} (errno: 98 - Address already in use)",
      "The server socket has failed to listen on any local network address. port: {address},",
      "The server socket has failed to listen on any local network address"},
     "torch cannot listen[ on {address}]: another program has the port",
     "under `dtrun torchrun` dtrun itself serves the store there: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, "
     "or "
     "give TCPStore is_master=False; else leave job.master_port unset, and end the leftover of an earlier "
     "run",
     "c10d socket.cpp, TCPStoreLibUvBackend.cpp, pytorch 126510"},
    {"torch-store-silent",
     {"The client socket has timed out after {time} while trying to connect to ({host}, {port})",
      "The client socket has timed out after {time} while trying to connect to {host}:{port}",
      "connect() timed out. Original timeout was {time} ms"},
     "rank 0's store[ at {host}, port {port},] did not answer within {time}",
     "look why rank 0 did not start to listen; MASTER_ADDR must be an address of its "
     "host that the others reach",
     "c10d socket.cpp, pytorch 146371",
     Depth::kCause,
     Kind::kRendezvous},
    {"torch-store-unreachable",
     {"The client socket has failed to connect to any network address of ({host}, {port})"},
     "rank 0's store at {host}, port {port}, cannot be reached",
     "check firewall and routes to {host}; MASTER_ADDR must be an address of its host that the others reach",
     "c10d socket.cpp",
     Depth::kCause,
     Kind::kRendezvous},
    {"torch-store-name",
     {"network addresses of ({host}, {port}) cannot be retrieved (gai error: {number} - {reason})"},
     "the name of rank 0's host does not resolve: {host}: {reason}",
     "put it into DNS or /etc/hosts of all hosts, or give cluster.hosts addresses",
     "c10d socket.cpp, "
     "pytorch 73682",
     Depth::kCause,
     Kind::kRendezvous},
    {"torch-store-clients",
     {"seconds waiting for clients. {joined}/{expected} clients joined"},
     "only {joined} of {expected} ranks came to torch's store",
     "look at the ranks that are missing; WORLD_SIZE must be the number of ranks that really start",
     "c10d TCPStore.cpp",
     Depth::kCause,
     Kind::kRendezvous},
    {"torch-store-barrier",
     {"imed out initializing process group in store based barrier on rank: {rank}, for key: {key} "
      "(world_size={size}, "
      "worker_count={count}, timeout=",
      "imed out initializing process group in store based barrier on rank {rank}, for key: {key} "
      "(world_size={size}, "
      "num_workers_joined={count}, timeout="},
     "{count} ranks came to torch's store where {size} were expected",
     "when more came: end the other job, or the leftover of an earlier one, that uses the same MASTER_PORT, "
     "and call "
     "init_process_group once; when fewer came: look at the ranks that are missing",
     "torch distributed_c10d.py, yolov5 issue 4409",
     Depth::kCause,
     Kind::kRendezvous},
    {"torch-store-barrier-waits",
     {"Waiting in store based barrier to initialize process group for rank: {rank}, key: {key} "
      "(world_size={size}, "
      "worker_count={count},"},
     "rank {rank} waited for the others at torch's store: {count} had come, {size} are expected",
     "when more came than expected, another job uses the same MASTER_PORT; else look at the ranks that are "
     "missing",
     "torch distributed_c10d.py, yolov5 issue 4574",
     Depth::kSymptom,
     Kind::kRendezvous},
    {"torch-store-retrying",
     {"TCP client failed to connect/validate to host {host}:{port} - retrying"},
     "rank 0's store at {host}, port {port}, does not answer, or resets connections",
     "MASTER_ADDR must be an address of rank 0's host that the others reach; a proxy or firewall between "
     "them may take "
     "connections and drop them",
     "c10d TCPStore.cpp",
     Depth::kSymptom,
     Kind::kRendezvous},
    {"torch-environment",
     {"rendezvous: environment variable {variable} expected, but not set"},
     "torch misses the variable {variable}",
     "start the program by dtrun, whose per-process and torchrun launchers set it; do not start torch inside "
     "a "
     "process that clears its environment",
     "torch rendezvous.py"},
    {"torch-world-differs",
     {"Worker group has changed", "ValueError: rank and world_size must be set"},
     "ranks do not agree how many they are",
     "let dtrun set RANK and WORLD_SIZE, and set neither in job.env",
     "torch"},
    {"torch-store-waited",
     {"wait timeout after {time}, keys: {keys...}", "Timeout waiting for key: {keys} after {time} ms",
      "RuntimeError: Socket Timeout", "DistStoreError: Socket Timeout"},
     "a rank never came, or came too late[: it did not publish {keys} within {time}]",
     "look at the first failure of another rank; when one is only late, give init_process_group(timeout=...) "
     "more",
     "c10d TCPStore.cpp, FileStore.cpp",
     Depth::kSymptom,
     Kind::kRendezvous},
    {"torch-store-gone",
     {"Failed to recv, got 0 bytes. Connection was likely closed", "failed to recv, got 0 bytes",
      "recvValue failed on SocketImpl(", "sendBytes failed on SocketImpl(",
      "DistNetworkError: Connection reset by peer", "RuntimeError: Connection reset by peer"},
     "torch's store went away: rank 0 ended first",
     "look at the first failure of rank 0",
     "c10d TCPStore.cpp, Utils.hpp",
     Depth::kSymptom,
     Kind::kNetwork},
    {"torch-rendezvous",
     {"The connection to the C10d store has failed. See inner exception for details",
      "RendezvousConnectionError", "RendezvousTimeoutError", "RendezvousClosedError"},
     "torchrun's own rendezvous failed: its store could not be reached, or was closed",
     "start with `dtrun torchrun ...`, which needs none on one host; else check --rdzv-endpoint from all "
     "hosts",
     "torch distributed/elastic/rendezvous",
     Depth::kSymptom,
     Kind::kRendezvous},
};

}  // namespace

std::span<const KnownFailure> TorchStoreFailures() { return kTorchStoreTable; }

}  // namespace dtrun::failures
