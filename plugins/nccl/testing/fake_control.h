// What tests may bend in the fake libraries, which play one machine with device memory in the process itself.
//
// Each library exports a function that gives its controls; tests find it with dlsym in the very
// file that the plugin loads. Any thread; a test puts back what it changed (see Reset).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "plugins/nccl/nccl_abi.h"

namespace dtrun::nccl_fake {

// What is wrong with peer access in one direction.
enum class PeerFault {
  kNone,
  kRefused,      // cudaDeviceCanAccessPeer says no
  kUnsupported,  // it says yes, and enabling it gives error 217
  kCorrupt,      // a byte of every copy is wrong
  kSlow,         // a copy takes 250 ms
  kHang,         // a copy never ends
  kCrash,        // a copy kills the process
};

// libcudart and libcuda: dtrun_fake_cuda(). A test of whole programs says the same with variables:
//   DTRUN_FAKE_DEVICES=2
//   DTRUN_FAKE_FILES=checked                        none of them where a file of /dev may not be opened
//   DTRUN_FAKE_DRIVER=12020                         driver_version, and that it is too old
//   DTRUN_FAKE_PEERS="0>1=hang,node1/1>0=refused"   the second is so on node1 only
//   DTRUN_FAKE_DELAYS=SEED:MICROSECONDS             delay_seed and delay_us
//   DTRUN_FAKE_MEMORY=known                         knows_memory
//   DTRUN_FAKE_HOST_BYTES, DTRUN_FAKE_DEVICE_BYTES  host_bytes_left, device_bytes_left
//   DTRUN_FAKE_LOCKS=1, DTRUN_FAKE_QUEUES=1         locks, queues
struct CudaControl {
  std::atomic<int> device_count{1};
  std::atomic<int> device_error{0};      // what cudaGetDeviceCount returns
  std::atomic<int> event_error{0};       // what cudaEventQuery returns instead of success
  std::atomic<int> wait_value_error{0};  // what cuStreamWaitValue32_v2 returns
  std::atomic<int> driver_version{13000};

  // Before each task a stream waits a random time below delay_us, drawn from the seed and the stream's
  // number: work that was not told to wait for other work then comes too early for some seed.
  std::atomic<int> delay_us{0};
  std::atomic<std::uint64_t> delay_seed{0};

  // As a driver has it: calls exclude one another, and those that allocate and free wait, inside, for all
  // streams. One that waits too long for any test ends the process.
  std::atomic<bool> locks{false};
  // Streams made from now on share so many queues of their device, in each of which all work runs in the
  // order of the calls; 0: each has its own.
  std::atomic<int> queues{0};

  // Whether memory is the host's unless cudaMalloc gave it. Else all memory is device 0's, as suites need
  // that give what they have.
  std::atomic<bool> knows_memory{false};
  // What can still be allocated; -1: no limit.
  std::atomic<std::int64_t> host_bytes_left{-1};
  std::atomic<std::int64_t> device_bytes_left{-1};  // of all devices together

  std::atomic<int> host_waits{0};     // calls in which the host waited for a device
  std::atomic<int> streams{0};        // alive, the default ones aside
  std::atomic<int> events{0};         // alive
  std::atomic<int> last_priority{0};  // that a stream was created with

  std::mutex mutex;
  std::set<const void*> host_memory;               // pointers that are host memory for once
  std::set<const void*> managed_memory;            // the same, moved by the library
  std::set<const void*> capturing;                 // streams that are captured into a graph
  std::map<std::pair<int, int>, PeerFault> peers;  // by owner and reader

  void SetPeer(int from, int to, PeerFault fault) {
    const std::lock_guard lock(mutex);
    peers[{from, to}] = fault;
  }
  void Reset() {
    device_count = 1;
    device_error = event_error = wait_value_error = 0;
    driver_version = 13000;
    delay_us = 0;
    delay_seed = 0;
    knows_memory = locks = false;
    queues = 0;
    host_bytes_left = device_bytes_left = -1;
    host_waits = 0;
    const std::lock_guard lock(mutex);
    host_memory.clear();
    managed_memory.clear();
    capturing.clear();
    peers.clear();
  }
};

// libnccl: dtrun_fake_nccl().
struct NcclControl {
  std::atomic<int> version{22809};
  std::atomic<bool> loopback{true};        // the interface that the unique id names
  std::atomic<bool> peer_access{true};     // false: connecting fails unless NCCL_P2P_DISABLE is 1
  std::atomic<bool> stuck{false};          // operations neither end nor fail
  std::atomic<int> id_result{0};           // what ncclGetUniqueId returns
  std::atomic<int> init_result{0};         // what connecting ends with
  std::atomic<int> launch_result{0};       // what ncclGroupEnd returns
  std::atomic<int> launch_polls{0};        // launches take so many looks at the communicator's state
  std::atomic<int> async_error{0};         // what the state of a busy communicator is
  std::atomic<int> comms{0};               // communicators alive
  std::atomic<int> reductions{0};          // reductions alive
  std::atomic<int> native_all_to_alls{0};  // calls
  std::atomic<int> memory_result{0};       // what ncclMemAlloc returns
  std::atomic<int> register_result{0};     // what ncclCommRegister returns
  std::atomic<int> blocks{0};              // of ncclMemAlloc, alive
  std::atomic<int> registrations{0};       // alive

  std::mutex mutex;
  std::string last_error;
  nccl_plugin::nccl::Config last_config;  // as far as it was given
  std::string last_net_name;

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
    memory_result = register_result = 0;
    Say("");
  }
};

}  // namespace dtrun::nccl_fake

extern "C" {
dtrun::nccl_fake::CudaControl* dtrun_fake_cuda();
dtrun::nccl_fake::NcclControl* dtrun_fake_nccl();
}
