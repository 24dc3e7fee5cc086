#include "cuda_api.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>

#include "dtrun/plugin.hpp"

namespace dtrun::cuda {
namespace {

namespace fs = std::filesystem;

// nvidiactl and nvidia0, nvidia1, ...
bool IsDeviceFile(const std::string& name) {
  constexpr char kPrefix[] = "nvidia";
  if (name == "nvidiactl") return true;
  const std::size_t prefix = sizeof kPrefix - 1;
  return name.size() > prefix && name.compare(0, prefix, kPrefix) == 0 &&
         std::all_of(name.begin() + prefix, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr char kByMode[] =
    "add the user to the group that owns the file (often video or render; then log in again), or have the "
    "administrator give it the mode 0666, the driver's default";
constexpr char kByControlGroup[] =
    "its control group forbids the GPU: start the container with it (docker run --gpus all), or ask the "
    "scheduler for one";

// Of a virtual environment or a prefix, and of Debian's own interpreter.
constexpr const char* kPackages[][2] = {{"lib", "site-packages"}, {"local/lib", "dist-packages"}};

std::vector<fs::path> Sorted(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

fs::path FirstPython(const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    if (python.is_absolute() && ::access(python.c_str(), X_OK) == 0) return python;
  }
  return {};
}

sdk::SharedLibrary FindCuda(const std::string& wanted, const std::string& option) {
  if (!wanted.empty()) {
    sdk::SharedLibrary library = sdk::SharedLibrary::Open({wanted}, "the CUDA runtime", "correct " + option);
    if (library.Find("cudaGetDeviceCount").present()) return library;
    throw sdk::Failure(DTRUN_NOT_FOUND, "'" + library.path() +
                                            "' is not a CUDA runtime: it has no 'cudaGetDeviceCount'; set " +
                                            option + " to a libcudart.so, or leave it out");
  }
  const std::vector<std::string> names = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  return sdk::SharedLibrary::Open(WithPythonLibraries(names), "the CUDA runtime",
                                  "install it (the CUDA toolkit, or pip's nvidia-cuda-runtime for the "
                                  "python3 that is first on PATH), name "
                                  "its folder in LD_LIBRARY_PATH" +
                                      (option.empty() ? "" : ", or set " + option + " to its file"));
}

// What the runtime's own text leaves open, as a clause; `advice` becomes what to do where that is known.
std::string MoreAbout(const CudaApi& api, Error error, std::string* advice) {
  if (error == kInsufficientDriver) {
    int runtime = 0;
    api.runtime_get_version(&runtime);
    const int driver = api.DriverVersion();
    if (driver == 0) return ", because no driver is loaded";
    return ", the driver is for CUDA " + CudaVersionText(driver) + " and '" + api.library.path() +
           "' is CUDA " + CudaVersionText(runtime);
  }
  const std::optional<DeniedFile> denied = DeniedDeviceFile("/dev");
  if (!denied) return "";
  *advice = denied->advice;
  return ", and this user " + denied->what;
}

}  // namespace

std::optional<DeniedFile> DeniedDeviceFile(const fs::path& folder) {
  std::set<fs::path> files;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (IsDeviceFile(at->path().filename())) files.insert(at->path());
  }
  for (const fs::path& file : files) {
    // Not by access(): a control group can deny a device that the mode of its file allows.
    const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0) {
      close(descriptor);
    } else if (errno == EACCES || errno == EPERM) {
      const int reason = errno;
      return DeniedFile{"may not open '" + file.string() + "': " + std::generic_category().message(reason),
                        reason == EACCES ? kByMode : kByControlGroup};
    }
  }
  return std::nullopt;
}

std::vector<std::string> PythonLibraries(const std::vector<std::string>& names, const std::string& path) {
  const fs::path python = FirstPython(path);
  if (python.empty()) return {};
  std::error_code failure;
  const std::string version =
      fs::canonical(python, failure).filename();  // "python3.11", or no more than that
  std::vector<fs::path> folders;
  for (const auto& [lib, packages] : kPackages) {
    for (const fs::path& one : Sorted(python.parent_path().parent_path() / lib)) {
      const std::string name = one.filename();
      if (version.rfind("python3.", 0) == 0 ? name != version : name.rfind("python3.", 0) != 0) continue;
      for (const fs::path& wheel : Sorted(one / packages / "nvidia")) folders.push_back(wheel / "lib");
    }
  }
  std::vector<std::string> found;
  for (const std::string& name : names) {
    for (const fs::path& folder : folders) {
      if (fs::exists(folder / name, failure)) found.push_back((folder / name).string());
    }
  }
  return found;
}

std::vector<std::string> WithPythonLibraries(std::vector<std::string> names) {
  const char* const path = std::getenv("PATH");
  std::vector<std::string> found = PythonLibraries(names, path == nullptr ? "" : path);
  std::move(found.begin(), found.end(), std::back_inserter(names));
  return names;
}

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

CudaApi::CudaApi(const std::string& wanted, const std::string& option) : library(FindCuda(wanted, option)) {}

std::string CudaApi::Text(Error error) const {
  Handled(error);
  const char* const text = get_error_string(error);
  return "'" + std::string(text != nullptr ? text : "unknown error") + "'";
}

void CudaApi::Check(Error error, const std::string& doing) const {
  if (error == kSuccess) return;
  throw sdk::Failure(DTRUN_VENDOR,
                     "cuda cannot " + doing + ": " + Text(error) + " (error " + std::to_string(error) + ")")
      .Vendor("cuda", error);
}

Error CudaApi::Handled(Error error) const {
  if (error != kSuccess) get_last_error();
  return error;
}

bool CudaApi::Reached(Event event, const std::string& doing) const {
  const BesideCaptures relaxed(*this);
  const Error error = Handled(event_query(event));
  if (error == kNotReady) return false;
  Check(error, doing);
  return true;
}

int CudaApi::DeviceCount(const std::string& none, const std::string& advice) const {
  int count = 0;
  const Error error = get_device_count(&count);
  if (error == kSuccess && count > 0) return count;
  std::string why, what_to_do = advice;
  if (error != kSuccess) why = ": " + Text(error) + MoreAbout(*this, error, &what_to_do);
  throw sdk::Failure(DTRUN_FAILED_PRECONDITION, none + why + "; " + what_to_do).Vendor("cuda", error);
}

std::string CudaApi::BusId(int device) const {
  char text[32] = {};
  Check(device_get_pci_bus_id(text, sizeof text, device),
        "tell the address of device " + std::to_string(device));
  return text;
}

int CudaApi::DriverVersion() const {
  int version = 0;
  Check(driver_get_version(&version), "tell the driver's version");
  return version;
}

OnDevice::OnDevice(const CudaApi& api, int device) : api_(api) {
  int now = -1;
  api.Check(api.get_device(&now), "tell the current device");
  if (now == device) return;
  api.Check(api.set_device(device), "use device " + std::to_string(device));
  before_ = now;
}

OnDevice::~OnDevice() {
  if (before_ >= 0) api_.set_device(before_);
}

CudaDriver::CudaDriver(const std::string& name) {
  try {
    const auto library =
        sdk::SharedLibrary::Open({name}, "the CUDA driver's library", "it comes with the driver");
    // Without the suffix it is the first version, which is off unless a parameter of the kernel module says
    // otherwise.
    const sdk::Symbol wait = library.Find("cuStreamWaitValue32_v2");
    wait_value_ = wait;
    get_error_string_ = library.Find("cuGetErrorString");
    if (!wait.present()) {
      lack_ =
          "'" + library.path() +
          "' has no 'cuStreamWaitValue32_v2', which drivers for CUDA 11.7 and later have; upgrade the driver";
    }
  } catch (const sdk::Failure& failure) {
    lack_ = failure.what();
  }
}

void CudaDriver::WaitValue(Stream stream, DevicePointer address, unsigned value) const {
  if (wait_value_ == nullptr)
    throw sdk::Failure(DTRUN_UNSUPPORTED, "no stream of cuda can wait for a counter: " + lack_);
  const DriverError error = wait_value_(stream, address, value, kWaitValueGeq);
  if (error == kSuccess) return;
  const char* text = nullptr;
  if (get_error_string_ != nullptr) get_error_string_(error, &text);
  throw sdk::Failure(error == kNotSupported ? DTRUN_UNSUPPORTED : DTRUN_VENDOR,
                     "cuda cannot let a stream wait for a counter: '" +
                         std::string(text != nullptr ? text : "unknown error") + "' (error " +
                         std::to_string(error) + ")")
      .Vendor("cuda", error);
}

}  // namespace dtrun::cuda
