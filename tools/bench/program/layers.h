// The jobs that a run of `dtrun bench` measures in turn: our backends, and peers beside them.
//
// Values; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/bench/program/options.h"

namespace dtrun::bench {

struct Layer {
  std::string name;               // "shm", "gloo", "raw-mpi", "memcpy"
  std::vector<std::string> argv;  // starts all of its ranks
  std::string absent;             // why it cannot be started; empty: it can
  Operation operation;            // memcpy has its own
  std::vector<bool> registered;   // a column for each
};

// Where the programs are.
struct Programs {
  std::filesystem::path dtrun;  // this program
  std::filesystem::path rank;   // dtrun-bench, beside it
  std::filesystem::path peers;  // raw_gloo, raw_mpi, raw_ucx, torch_gloo.py

  static Programs Find();
};

// memcpy first, then ours, then peers. `folder` is private to the run; the ranks find `socket` there.
std::vector<Layer> PlanLayers(const Request& request, const Programs& programs,
                              const std::filesystem::path& folder);

// Bytes of buffers that all layers together hold at the largest size.
std::uint64_t BufferBytes(const Request& request, const std::vector<Layer>& layers);

}  // namespace dtrun::bench
