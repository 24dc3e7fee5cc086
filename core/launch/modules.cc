#include "core/launch/modules.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "core/launch/environment.h"
#include "core/plan/at.h"
#include "core/plan/place.h"
#include "core/plan/python.h"

namespace dtrun::launch {
namespace {

constexpr char kPackage[] = "dtrun";
constexpr char kEntryPoint[] = "torch.backends:dtrun";  // through which torch finds the package
constexpr char kAutoload[] = "TORCH_DEVICE_BACKEND_AUTOLOAD";
constexpr char kTorchVersion[] = "torch>=2.5";  // looks for that entry point

bool IsPython(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename();
  return name.starts_with("python") || name.starts_with("pypy");
}

// Whether Python or its search reads the variable.
bool IsOfPython(const std::string& variable) {
  return variable == "PATH" || variable == "LD_LIBRARY_PATH" || variable.starts_with("PYTHON");
}

// Whether ranks need the package, which replaces torch.distributed. If another program starts Python, that is
// not known here, and the package is not checked.
bool NeedsPackage(const spec::JobSpec& spec, const std::string& program) {
  return spec.backend.torch.is("dtrun") && IsPython(program);
}

// Whether the config or the ranks' environment tells torch to load no backends: any value but "1" does.
bool LoadsNoBackends(const std::map<std::string, std::string>& chosen) {
  const auto of_config = chosen.find(kAutoload);
  if (of_config != chosen.end()) return of_config->second != "1";
  const auto inherited = RankEnvironment();
  const auto found = inherited.find(kAutoload);
  return found != inherited.end() && found->second != "1";
}

}  // namespace

Result<preflight::ModuleRequest> ModulesToAsk(const spec::JobSpec& spec, const std::string& program) {
  preflight::ModuleRequest request;
  if (spec.backend.torch.is("dtrun") && LoadsNoBackends(plan::UserVariables(spec))) {
    return plan::At(spec.backend.torch,
                    "the ranks' environment sets {} to a value other than 1: torch would not load dtrun, "
                    "and the script would use gloo; unset it, or remove {}, import dtrun.torch in the script "
                    "and request the backend \"dtrun\"",
                    kAutoload, spec.backend.torch.key());
  }
  if (spec.python.modules.has()) request.names = *spec.python.modules;
  if (NeedsPackage(spec, program)) {
    request.names.insert(request.names.end(), {kPackage, kEntryPoint, kTorchVersion});
  }
  if (request.names.empty()) return request;
  if (!IsPython(program)) {
    return plan::At(
        spec.python.modules,
        "ranks run '{}', which is not a Python interpreter; put the interpreter before the script, as in "
        "[\"python3\", \"train.py\"], or remove {}",
        program, spec.python.modules.key());
  }
  request.interpreter = program;
  std::error_code unknown;
  request.folder = spec.job.cwd.value_or(std::filesystem::current_path(unknown).string());
  for (const auto& [name, value] : plan::UserVariables(spec)) {
    if (IsOfPython(name) && value.find("${") == value.npos) request.variables[name] = value;
  }
  return request;
}

Status CheckModules(const spec::JobSpec& spec, const std::string& program, const std::string& host,
                    const std::string& missing) {
  if (missing.empty()) return {};
  // These are queried last, so all modules before them were found.
  if (NeedsPackage(spec, program) && missing.ends_with(fmt::format("'{}'", kEntryPoint))) {
    return plan::At(spec.backend.torch,
                    "on host '{}', {}, which torch needs to find dtrun: the package is on the "
                    "path but not installed; install dtrun's wheel there, or add the folder with "
                    "its .dist-info to PYTHONPATH",
                    host, missing);
  }
  if (NeedsPackage(spec, program) && missing.ends_with(", older than 2.5")) {
    return plan::At(spec.backend.torch,
                    "on host '{}', {}; torch before 2.5 does not load backends by itself: remove {}, import "
                    "dtrun.torch in the script and request the backend \"dtrun\"",
                    host, missing, spec.backend.torch.key());
  }
  if (NeedsPackage(spec, program) && missing.ends_with(fmt::format("has no module '{}'", kPackage))) {
    const auto folder = plan::PackageFolder(plan::ProgramFolder());
    const std::string ours = folder.empty() ? "" : fmt::format("set PYTHONPATH={}, ", folder.string());
    return plan::At(spec.backend.torch,
                    "on host '{}', {}, which connects torch.distributed to dtrun; {}install "
                    "dtrun's wheel for it there, or name the interpreter that has it in "
                    "job.command",
                    host, missing, ours);
  }
  return plan::At(spec.python.modules,
                  "on host '{}', {}; install it there, or name the interpreter that has it in job.command",
                  host, missing);
}

}  // namespace dtrun::launch
