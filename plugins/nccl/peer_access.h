// Whether the GPUs of this host can really read each other's memory: tried in a child process
// that a deadline ends, because where the driver is wrong the copy hangs, corrupts or crawls.
//
// Call it before anything touches CUDA in this process: a context does not survive the fork.
// What was found is kept in the user's cache folder, by driver, devices and boot. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

// What names the CUDA runtime's file, for messages.
inline constexpr char kCudaLibraryOption[] = "backend.nccl.cuda_library";

// One direction between two devices: `to` reads the memory of `from`.
struct PeerPair {
  enum class State {
    kProven,
    kRefused,  // the driver says no, which NCCL hears too
    kBroken,   // the driver says yes, and it is not so
  };
  int from = 0;
  int to = 0;
  State state = State::kProven;
  double bytes_per_second = 0;  // of a proven one
  std::string reason = {};      // of the others
};

// "proven: 12.3 GB/s", "refused: REASON", "broken: REASON"
std::string VerdictText(const PeerPair& pair);

struct PeerReport {
  std::string key = {};                   // what it holds for: driver, boot, devices
  std::vector<std::string> devices = {};  // PCI bus ids, by index
  std::vector<PeerPair> pairs = {};
  bool cached = false;
  std::string trouble = {};  // why the trial told nothing; empty: it ended
};

struct PeerTrialOptions {
  std::string cuda_library;                                       // as the option; empty: find it
  std::filesystem::path cache;                                    // folder; empty: none
  std::chrono::nanoseconds limit = std::chrono::seconds(5);       // of all
  std::chrono::nanoseconds copy_limit = std::chrono::seconds(2);  // of one pair
};
PeerReport AskPeers(const PeerTrialOptions& options);

// $XDG_CACHE_HOME/dtrun or ~/.cache/dtrun; empty when the environment names neither.
std::filesystem::path CacheFolder();

// Reads what a trial wrote (peer_trial.h). `ended`: how its process ended, "" when as it should.
PeerReport ReadReport(const std::string& lines, const std::string& ended);

struct PeerVerdict {
  bool usable = true;  // peer access may stay on
  std::string reason;  // one line
  // The pair that speaks against it, "GPU 0 (0000:01:00.0) cannot read GPU 1 (...): REASON".
  std::optional<std::string> obstacle;
};
PeerVerdict Judge(const PeerReport& report);

// Whether NCCL may use one of its paths between GPUs: the choices "auto", "on", "off" of an option.
enum class Switch { kAuto, kOn, kOff };

// Which of NCCL's paths between the GPUs of a host the ranks may use (NCCL tries peer access, then
// host memory, then the network), from the options, the user's own variables and what a trial
// found. Pure but for what the inputs do.
struct GpuPathInputs {
  Switch p2p = Switch::kAuto;
  Switch shm = Switch::kAuto;
  int local_ranks = 1;
  std::function<std::optional<std::string>(const char* variable)> inherited;  // by the ranks
  std::function<PeerReport()> ask;                                            // tries the peers
  std::uint64_t shm_free_bytes = 0;                                           // in /dev/shm
};

struct GpuPaths {
  std::vector<std::pair<std::string, std::string>> facts;  // for the run header
  // For every rank of the host, beside those that the options dictate.
  std::vector<std::pair<std::string, std::string>> variables;
};

// Throws sdk::Failure when p2p is asked for and a pair of devices cannot.
GpuPaths ChooseGpuPaths(const GpuPathInputs& inputs);

}  // namespace dtrun::nccl_plugin
