#include "cuda_api.h"

#include <vector>

#include "device_files.h"
#include "dtrun/plugin.hpp"
#include "python_libraries.h"

namespace dtrun::cuda {
namespace {

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

}  // namespace dtrun::cuda
