#include "core/node/use_meter.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/thread.h"
#include "core/stacks/kernel.h"

namespace dtrun::node {
namespace {

// Of nvml.h, which the driver does not bring. Its functions with a version in the name stay as they are.
using Device = void*;
struct Utilization {
  unsigned gpu, memory;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned instance, compute_instance;
};
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned instance, compute_instance;
};
constexpr int kSuccess = 0;
constexpr int kMultiprocessors = 1, kUncorrected = 1, kSinceDriver = 0;
constexpr unsigned long long kCriticalXid = 8, kUnknownMemory = ~0ULL;

struct Reason {
  unsigned long long bit;
  const char* text;
};
constexpr Reason kReasons[] = {
    {0x4, "power cap"}, {0x8, "hardware"}, {0x20, "heat"}, {0x40, "heat"}, {0x80, "power brake"}};

std::string SlowedBy(unsigned long long reasons) {
  std::vector<std::string> texts;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) != 0 && std::ranges::find(texts, reason.text) == texts.end())
      texts.emplace_back(reason.text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

class Nvml {
 public:
  // Unset: no such library, or no driver.
  static std::optional<Nvml> Load(const std::string& library) {
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) return std::nullopt;
    Nvml nvml;
    int (*init)() = nullptr;
    bool whole = true;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      whole = whole && function != nullptr;
    };
    find("nvmlInit_v2", init);
    find("nvmlDeviceGetCount_v2", nvml.count_);
    find("nvmlDeviceGetHandleByIndex_v2", nvml.find_);
    find("nvmlDeviceGetUtilizationRates", nvml.utilization_);
    find("nvmlDeviceGetClockInfo", nvml.clock_);
    find("nvmlDeviceGetMaxClockInfo", nvml.most_clock_);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons_);
    find("nvmlDeviceGetTotalEccErrors", nvml.ecc_);
    find("nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes_);
    find("nvmlEventSetCreate", nvml.make_events_);
    find("nvmlDeviceRegisterEvents", nvml.register_);
    find("nvmlEventSetWait_v2", nvml.wait_);
    if (!whole || init() != kSuccess) return std::nullopt;
    nvml.FindDevices();
    return nvml;
  }

  std::map<pid_t, verdict::GpuUse> Read() {
    TakeEvents();
    std::map<pid_t, verdict::GpuUse> out;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const std::vector<ProcessInfo> processes = ProcessesOn(devices_[i]);
      if (processes.empty()) continue;
      const verdict::GpuUse use = UseOf(i);
      for (const ProcessInfo& process : processes) {
        verdict::GpuUse& of_process = out[static_cast<pid_t>(process.pid)];
        if (of_process.most_mhz > 0 && of_process.busy_percent >= use.busy_percent) continue;
        of_process = use;
        if (process.memory != kUnknownMemory) of_process.memory = static_cast<std::int64_t>(process.memory);
      }
    }
    return out;
  }

 private:
  void FindDevices() {
    unsigned count = 0;
    if (count_(&count) != kSuccess) return;
    const bool events = make_events_(&events_) == kSuccess;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (find_(i, &device) != kSuccess) continue;  // this process may not use it
      indexes_.push_back(static_cast<int>(i));
      devices_.push_back(device);
      xids_.push_back(0);
      if (events) register_(device, kCriticalXid, events_);
    }
  }

  void TakeEvents() {
    EventData event{};
    constexpr int kMost = 1000;  // events at a time
    for (int i = 0; i < kMost && events_ != nullptr && wait_(events_, &event, 0) == kSuccess; ++i) {
      const auto found = std::ranges::find(devices_, event.device);
      if (found != devices_.end() && event.type == kCriticalXid)
        xids_[static_cast<std::size_t>(found - devices_.begin())] = static_cast<std::int64_t>(event.data);
    }
  }

  std::vector<ProcessInfo> ProcessesOn(Device device) const {
    unsigned count = 0;
    if (processes_(device, &count, nullptr) == kSuccess) return {};
    count += 16;  // of those that start meanwhile
    std::vector<ProcessInfo> processes(count);
    if (processes_(device, &count, processes.data()) != kSuccess) return {};
    processes.resize(std::min<std::size_t>(count, processes.size()));
    return processes;
  }

  verdict::GpuUse UseOf(std::size_t i) const {
    Device device = devices_[i];
    verdict::GpuUse use;
    use.index = indexes_[i];
    use.xid = xids_[i];
    if (Utilization share{}; utilization_(device, &share) == kSuccess)
      use.busy_percent = static_cast<int>(std::min(share.gpu, 100U));
    unsigned mhz = 0;
    if (clock_(device, kMultiprocessors, &mhz) == kSuccess) use.clock_mhz = static_cast<int>(mhz);
    if (most_clock_(device, kMultiprocessors, &mhz) == kSuccess) use.most_mhz = static_cast<int>(mhz);
    unsigned long long number = 0;
    if (reasons_(device, &number) == kSuccess) use.slowed = SlowedBy(number);
    if (ecc_(device, kUncorrected, kSinceDriver, &number) == kSuccess)  // fails where ECC is off
      use.ecc_errors = static_cast<std::int64_t>(number);
    return use;
  }

  int (*count_)(unsigned*) = nullptr;
  int (*find_)(unsigned, Device*) = nullptr;
  int (*utilization_)(Device, Utilization*) = nullptr;
  int (*clock_)(Device, int, unsigned*) = nullptr;
  int (*most_clock_)(Device, int, unsigned*) = nullptr;
  int (*reasons_)(Device, unsigned long long*) = nullptr;
  int (*ecc_)(Device, int, int, unsigned long long*) = nullptr;
  int (*processes_)(Device, unsigned*, ProcessInfo*) = nullptr;
  int (*make_events_)(void**) = nullptr;
  int (*register_)(Device, unsigned long long, void*) = nullptr;
  int (*wait_)(void*, EventData*, unsigned) = nullptr;
  void* events_ = nullptr;
  std::vector<int> indexes_;
  std::vector<Device> devices_;
  std::vector<std::int64_t> xids_;
};

}  // namespace

struct UseMeter::Shared {
  explicit Shared(std::string name) : library(std::move(name)) {}

  const std::string library;
  std::mutex mutex;
  bool reading = false, absent = false;
  std::map<pid_t, verdict::GpuUse> last;
  std::optional<Nvml> nvml = {};  // of the thread that reads
};

UseMeter::UseMeter(std::string library) : shared_(std::make_shared<Shared>(std::move(library))) {}

std::map<pid_t, verdict::GpuUse> UseMeter::Read() const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->reading || shared_->absent) return shared_->last;
  const auto read = [shared = shared_] {
    if (!shared->nvml) shared->nvml = Nvml::Load(shared->library);
    std::map<pid_t, verdict::GpuUse> now;
    if (shared->nvml) now = shared->nvml->Read();
    const std::lock_guard done(shared->mutex);
    shared->last = std::move(now);
    shared->absent = !shared->nvml;
    shared->reading = false;
  };
  try {
    StartThread("dtrun-gpus", read).detach();
    shared_->reading = true;
  } catch (const std::system_error&) {
    // no thread available now; the next question tries again
  }
  return shared_->last;
}

void UseMeter::AddTo(std::vector<verdict::RankDoing>& ranks) const {
  const std::map<pid_t, verdict::GpuUse> gpus = Read();
  const std::int64_t network = stacks::NetworkBytes();
  for (verdict::RankDoing& doing : ranks) {
    doing.network = network;
    if (const auto gpu = gpus.find(doing.pid); gpu != gpus.end()) doing.gpu = gpu->second;
  }
}

}  // namespace dtrun::node
