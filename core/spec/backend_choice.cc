#include "core/spec/backend_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/base/text.h"
#include "core/options/text.h"

namespace dtrun::spec {
namespace {

// Backends that move device memory only, with their device plugin. "auto" tries them first. It does not try
// mpi, because only started ranks show whether that works.
struct DeviceBackend {
  std::string_view name, device;
};
constexpr DeviceBackend kDeviceBackends[] = {{"nccl", "cuda"}};

// torch's words for devices, with the device plugin.
struct DeviceWord {
  std::string_view word, plugin;
};
constexpr DeviceWord kDeviceWords[] = {
    {"cuda", "cuda"}, {"hip", "rocm"}, {"rocm", "rocm"}, {"xpu", "level_zero"}};
constexpr std::string_view kHostWord = "cpu";

// Collective libraries that a third-party plugin may be named after.
constexpr std::string_view kOtherLibraries[] = {"ccl", "hccl", "oneccl", "rccl", "ucc", "xccl"};

Error Wrong(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

std::string Underscored(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

// The device plugin for `word`; empty for host memory.
Result<std::string> DeviceNamed(std::string_view word, const std::vector<std::string>& devices) {
  if (word == kHostWord) return std::string();
  const auto* const known = std::ranges::find(kDeviceWords, word, &DeviceWord::word);
  if (known != std::end(kDeviceWords)) return std::string(known->plugin);
  if (std::ranges::find(devices, Underscored(word)) != devices.end()) return Underscored(word);
  std::vector<std::string> words{std::string(kHostWord)};
  for (const DeviceWord& one : kDeviceWords) words.emplace_back(one.word);
  for (const std::string& one : devices) {
    if (std::ranges::find(words, one) == words.end()) words.push_back(one);
  }
  const auto nearest = Nearest(std::string(word), words);
  return Wrong(fmt::format("'{}' is not a kind of memory; {}", word,
                           nearest ? fmt::format("did you mean '{}'?", *nearest)
                                   : fmt::format("known here: {}", fmt::join(words, ", "))));
}

// Rejects memory that a known backend cannot move, without querying it.
Status CheckMemory(std::string_view word, std::string_view name, const std::string& device) {
  const auto* const known = std::ranges::find(kDeviceBackends, name, &DeviceBackend::name);
  if (known == std::end(kDeviceBackends) || known->device == device) return {};
  if (device.empty())
    return Wrong(
        fmt::format("'{}:{}': {} moves device memory only; name one for host memory, as in backend.name = "
                    "\"cpu:gloo,{}:{}\"",
                    word, name, name, known->device, name));
  return Wrong(
      fmt::format("'{0}:{1}': {1} moves memory of {2} only; write {2}:{1}, or another backend for {0}", word,
                  name, known->device));
}

Status TakePart(std::string_view part, const std::vector<std::string>& devices, BackendChoice* choice) {
  const std::size_t colon = part.find(':');
  const std::string_view word = Trim(part.substr(0, colon));
  const std::string name(colon == part.npos ? "" : Trim(part.substr(colon + 1)));
  if (colon == part.npos || word.empty() || name.empty()) {
    return Wrong(fmt::format("expected MEMORY:BACKEND in each part, as in \"cpu:gloo,cuda:nccl\"; found {}",
                             options::QuoteShort(std::string(part))));
  }
  auto device = DeviceNamed(word, devices);
  if (!device) return std::move(device).error();
  if (name == "auto" || name == "none") {
    return Wrong(fmt::format("'{}:{}' names no backend; name one, or leave the part out", word, name));
  }
  if (Status carried = CheckMemory(word, name, *device); !carried) return carried;
  std::string& of = device->empty() ? choice->host : choice->device;
  if (!of.empty()) {
    return Wrong(
        device->empty() || *device == choice->device_kind
            ? fmt::format("'{}' is there twice; leave one of them out", word)
            : fmt::format("a job has one kind of device; leave out '{}:{}' or the other", word, name));
  }
  of = name;
  if (!device->empty()) choice->device_kind = *std::move(device);
  return {};
}

}  // namespace

const std::vector<std::string>& HostBackends() {
  static const std::vector<std::string> names{"ucx", "gloo"};
  return names;
}

bool IsDeviceBackend(std::string_view name) {
  return std::ranges::find(kDeviceBackends, name, &DeviceBackend::name) != std::end(kDeviceBackends);
}

bool IsOwnBackend(std::string_view name) {
  return IsDeviceBackend(name) || std::ranges::count(HostBackends(), name) > 0 || name == "mpi";
}

bool IsSlip(std::string_view name, const std::vector<std::string>& known) {
  const bool another =
      IsOwnBackend(name) || std::ranges::find(kOtherLibraries, name) != std::end(kOtherLibraries);
  return !another && Nearest(name, known).has_value();
}

Result<BackendChoice> ReadBackendChoice(const options::Data& name, const std::vector<std::string>& devices) {
  BackendChoice choice;
  if (const auto* list = std::get_if<std::vector<std::string>>(&name)) {
    for (const std::string& one : *list) {
      if (list->size() > 1 && (one == "none" || one == "auto"))
        return Wrong(
            fmt::format("'{0}' is in a list, and dtrun tries the names of a list in order; write "
                        "\"{0}\" alone, or remove it",
                        one));
      if (one.find(':') == one.npos) continue;
      return Wrong(
          fmt::format("'{}' is in a list, and dtrun tries the names of a list in order; write one text, "
                      "\"cpu:gloo,cuda:nccl\", or names alone, [\"nccl\", \"gloo\"]",
                      one));
    }
    choice.names = *list;
    return choice;
  }
  const std::string& text = std::get<std::string>(name);
  if (text == "auto") {
    choice.automatic = true;
    for (const DeviceBackend& one : kDeviceBackends) choice.names.emplace_back(one.name);
    choice.names.insert(choice.names.end(), HostBackends().begin(), HostBackends().end());
    return choice;
  }
  if (text.find(':') == text.npos) {
    choice.names = {text};
    return choice;
  }
  for (const std::string_view part : Split(text, ',')) {
    if (Status taken = TakePart(part, devices, &choice); !taken) return std::move(taken).error();
  }
  for (const std::string& one : {choice.host, choice.device}) {
    if (!one.empty() && std::ranges::find(choice.names, one) == choice.names.end())
      choice.names.push_back(one);
  }
  return choice;
}

BackendChoice BackendChoiceOf(const JobSpec& spec) {
  const options::Data& name = spec.backend.name.value.data;
  auto choice = ReadBackendChoice(name, spec.devices);
  if (choice) return *std::move(choice);
  BackendChoice wrong;
  if (const auto* list = std::get_if<std::vector<std::string>>(&name)) wrong.names = *list;
  if (const auto* text = std::get_if<std::string>(&name)) wrong.names = {*text};
  return wrong;
}

std::vector<std::string> BackendNames(const JobSpec& spec) { return BackendChoiceOf(spec).names; }

}  // namespace dtrun::spec
