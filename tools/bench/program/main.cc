// dtrun-bench: a rank of `dtrun bench` for libdtrun, or memcpy for comparison.
//
//   dtrun-bench SOCKET dtrun      operations of libdtrun
//   dtrun-bench SOCKET memcpy     all ranks copy at once
#include <cstring>
#include <stdexcept>

#include "tools/bench/program/copy_peer.h"
#include "tools/bench/program/dtrun_peer.h"

namespace {

dtrun::bench::Peer* Make(int argc, char** argv) {
  if (argc == 1 && std::strcmp(argv[0], "dtrun") == 0) return new dtrun::bench::DtrunPeer;
  if (argc == 2 && std::strcmp(argv[0], "memcpy") == 0) return new dtrun::bench::CopyPeer(argv[1]);
  throw std::runtime_error("expected 'dtrun', or 'memcpy' and a file; see dtrun bench --help");
}

}  // namespace

int main(int argc, char** argv) { return dtrun::bench::ServeAsRank(argc, argv, &Make); }
