// What tests may bend in the two fake libraries, which play one machine whose device memory is
// the process's own.
//
// Each library exports a function that gives its controls; tests find it with dlsym in the very
// file that the plugin loads. Any thread; a test puts back what it changed (see Reset).
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace dtrun::nccl_fake {

// What is wrong with peer access in one direction.
enum class PeerFault {
  kNone,
  kRefused,      // cudaDeviceCanAccessPeer says no
  kUnsupported,  // it says yes, and enabling it gives error 217
  kCorrupt,      // a byte of every copy is wrong
  kSlow,         // a copy takes 100 ms
  kHang,         // a copy never ends
  kCrash,        // a copy kills the process
};

// libcudart: dtrun_fake_cuda(). A test of whole programs says the same with the variables
// DTRUN_FAKE_DEVICES=2 and DTRUN_FAKE_PEERS="0>1=hang,node1/1>0=refused"; the second is so on node1 only.
struct CudaControl {
  std::atomic<int> device_count{1};
  std::atomic<int> device_error{0};  // what cudaGetDeviceCount returns
  std::atomic<int> event_error{0};   // what cudaEventQuery returns instead of success

  std::mutex mutex;
  std::set<const void*> host_memory;               // pointers that are host memory for once
  std::map<std::pair<int, int>, PeerFault> peers;  // by owner and reader

  void SetPeer(int from, int to, PeerFault fault) {
    const std::lock_guard lock(mutex);
    peers[{from, to}] = fault;
  }
  void Reset() {
    device_count = 1;
    device_error = event_error = 0;
    const std::lock_guard lock(mutex);
    host_memory.clear();
    peers.clear();
  }
};

// libnccl: dtrun_fake_nccl().
struct NcclControl {
  std::atomic<int> version{22809};
  std::atomic<bool> loopback{true};     // the interface that the unique id names
  std::atomic<bool> peer_access{true};  // false: connecting fails unless NCCL_P2P_DISABLE is 1
  std::atomic<bool> stuck{false};       // operations neither end nor fail
  std::atomic<int> id_result{0};        // what ncclGetUniqueId returns
  std::atomic<int> init_result{0};      // what connecting ends with
  std::atomic<int> launch_result{0};    // what ncclGroupEnd returns
  std::atomic<int> launch_polls{0};     // launches take so many looks at the communicator's state
  std::atomic<int> async_error{0};      // what the state of a busy communicator is
  std::atomic<int> comms{0};            // communicators alive
  std::atomic<int> reductions{0};       // reductions alive
  std::atomic<int> last_max_ctas{0};    // of the last configuration
  std::atomic<std::size_t> last_config_size{0};
  std::atomic<int> native_all_to_alls{0};  // calls

  std::mutex mutex;
  std::string last_error;

  void Say(const std::string& text) {
    const std::lock_guard lock(mutex);
    last_error = text;
  }
  void Reset() {
    version = 22809;
    loopback = peer_access = true;
    stuck = false;
    id_result = init_result = launch_result = launch_polls = async_error = 0;
    native_all_to_alls = 0;
    Say("");
  }
};

}  // namespace dtrun::nccl_fake

extern "C" {
dtrun::nccl_fake::CudaControl* dtrun_fake_cuda();
dtrun::nccl_fake::NcclControl* dtrun_fake_nccl();
}
