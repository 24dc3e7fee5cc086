// The jobs that a run of `dtrun bench` measures in turn: dtrun's backends, and peers for comparison.
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
  std::vector<std::string> argv;  // starts all its ranks
  std::string absent;             // why it cannot be started; empty: it can
  Operation operation;            // memcpy has its own
  std::vector<bool> registered;   // one column each
};

// The paths of the programs.
struct Programs {
  std::filesystem::path dtrun;  // this program
  std::filesystem::path rank;   // dtrun-bench, beside it
  std::filesystem::path peers;  // raw_gloo, raw_mpi, raw_ucx, torch_gloo.py

  static Programs Find();
};

// memcpy first, then dtrun's backends, then peers. `folder` is private to the run; ranks find `socket` in it.
std::vector<Layer> PlanLayers(const Request& request, const Programs& programs,
                              const std::filesystem::path& folder);

// Total bytes of buffers of all layers at the largest size.
std::uint64_t BufferBytes(const Request& request, const std::vector<Layer>& layers);

}  // namespace dtrun::bench
