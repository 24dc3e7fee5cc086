// `dtrun plugins check`: what the host would say of a plugin's file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>

#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/options/value.h"
#include "core/plugin/elf.h"
#include "core/plugin/search_path.h"
#include "sdk/helpers/shared_object.h"
#include "tools/dtrun/options_page.h"
#include "tools/dtrun/plugins.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

struct Verdict {
  fs::path path;
  std::string refusal;                // why the host does not load it; empty: it does
  std::vector<std::string> problems;  // rules that it breaks, though the host loads it
  std::vector<std::string> warnings;
  std::string access, build_id;  // of the file; empty: it cannot be read
  std::optional<helpers::SharedObject> object;
  std::optional<plugin::File> file;  // with `it`: once the host has loaded it
  plugin::Description it;
  std::string unusable;  // why it cannot be used on this host

  const char* Word() const { return !refusal.empty() ? "refused" : problems.empty() ? "ok" : "unfit"; }
};

// Reads what the file says without loading it. Returns why it is no shared object of this machine.
std::string ReadFile(Verdict* verdict) {
  const Result<plugin::OpenedFile> opened = plugin::OpenedFile::Open(verdict->path);
  if (!opened) return opened.error().text + "; name the shared object that the build has made";
  verdict->access = fmt::format("mode {:04o}, owner user {}, group {}", opened->info().st_mode & 07777u,
                                opened->info().st_uid, opened->info().st_gid);
  const Result<plugin::ElfFile> elf = plugin::ReadElf(*opened);
  if (!elf) return elf.error().text;
  verdict->build_id = elf->build_id;
  try {
    verdict->object = helpers::ReadSharedObject(verdict->path.string());
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

// How jobs use it: "backend.name = \"tcp\"".
std::string UseOf(const Verdict& verdict) {
  const std::string name = ShownName(*verdict.file);
  const std::pair<const char*, const char*> uses[] = {
      {"plan", "launcher.name"}, {"find_hosts", "cluster.from"}, {"connect", "cluster.connect"}};
  std::string keys = verdict.file->kind == plugin::Kind::kBackend ? "backend.name" : "";
  for (const auto& [member, key] : uses) {
    if (std::ranges::count(verdict.it.members, member) != 0)
      keys += (keys.empty() ? "" : ", ") + std::string(key);
  }
  if (keys.empty()) return fmt::format("memory of the device kind {}", name);
  return fmt::format("{} = \"{}\", with --plugin-dir {}", keys, name, verdict.path.parent_path().string());
}

// Whether a plugin says by this status that this host lacks something, such as a library: it is fit then.
bool IsAbsence(dtrun_status status) {
  constexpr dtrun_status kAbsences[] = {DTRUN_NOT_FOUND, DTRUN_UNSUPPORTED, DTRUN_FAILED_PRECONDITION,
                                        DTRUN_VENDOR, DTRUN_SYSTEM};
  return std::ranges::find(kAbsences, status) != std::end(kAbsences);
}

// Asks the host, in the probe's process.
void AskHost(const ConfigArguments& arguments, plugin::Kind kind, Verdict* verdict) {
  auto file = plugin::Find(kind, verdict->path.string(), {});
  auto probe = file ? plugin::Probe::Start(*file) : file.error();
  if (!probe) {
    verdict->refusal = probe.error().text;
    return;
  }
  verdict->file = *file;
  verdict->it = (*probe)->description();
  verdict->warnings = file->warnings;
  for (const auto& [what, text] : {std::pair("version", &verdict->it.version),
                                   {"vendor", &verdict->it.vendor},
                                   {"license", &verdict->it.license},
                                   {"summary", &verdict->it.summary}})
    if (text->empty()) verdict->problems.push_back(fmt::format("its table has no {} (V9)", what));
  for (const options::Spec& spec : verdict->it.options) {
    if (!spec.default_text) continue;
    const auto value = options::ParseText(spec, *spec.default_text, {});
    if (!value)
      verdict->problems.push_back(
          fmt::format("the default of its option '{}' is unusable: {} (O1)", spec.key, value.error().text));
  }
  const auto here = FoundHere(arguments, *file, **probe);
  verdict->unusable = here ? plugin::Unusable(*here) : here.error().text;
  if (!here && !IsAbsence(here.error().code)) verdict->refusal = here.error().text;
  if (const std::string written = (*probe)->Written(); !written.empty()) {
    verdict->warnings.push_back(
        fmt::format("it writes to standard output or error, between the lines of every rank: '{}'", written));
  }
}

Verdict VerdictOf(const ConfigArguments& arguments, const std::string& word) {
  std::error_code failure;
  Verdict verdict;
  verdict.path = fs::absolute(word, failure).lexically_normal();
  if (failure) verdict.path = word;
  const std::string unreadable = ReadFile(&verdict);
  const auto named = plugin::ParseFileName(verdict.path.filename().string());
  if (named && !verdict.access.empty()) {
    AskHost(arguments, named->first, &verdict);
  } else if (!unreadable.empty()) {
    verdict.refusal = unreadable;
  } else {
    verdict.refusal = fmt::format(
        "'{}' is no name of a plugin's file; call it libdtrun_backend_NAME.so, libdtrun_launcher_NAME.so or "
        "libdtrun_device_NAME.so, with the NAME of its table",
        verdict.path.filename().string());
  }
  if (!verdict.object) return verdict;
  for (std::string& problem : helpers::Unfit(*verdict.object)) verdict.problems.push_back(problem + " (V2)");
  if (!verdict.object->nodelete)
    verdict.problems.emplace_back("it is not marked NODELETE; link it with -Wl,-z,nodelete (V12)");
  return verdict;
}

Json AsJson(const Verdict& verdict) {
  Json out = verdict.file ? IdentityOf(*verdict.file, verdict.it) : Json{{"path", verdict.path.string()}};
  out["verdict"] = verdict.Word();
  if (!verdict.refusal.empty()) out["refusal"] = verdict.refusal;
  out["problems"] = verdict.problems;
  out["warnings"] = verdict.warnings;
  if (!verdict.access.empty()) out["access"] = verdict.access;
  if (verdict.object) {
    out["build_id"] = verdict.build_id;
    out["exports"] = verdict.object->exported;
    out["foreign"] = helpers::ForeignSymbols(*verdict.object);
    out["links"] = verdict.object->needed;
    out["nodelete"] = verdict.object->nodelete;
  }
  if (!verdict.file) return out;
  out["members"] = verdict.it.members;
  out["options"] = Json::array();
  for (const options::Spec& spec : verdict.it.options) out["options"].push_back(ToJson(spec));
  out["use"] = UseOf(verdict);
  if (!verdict.unusable.empty()) out["unusable"] = verdict.unusable;
  return out;
}

std::string AsText(const Verdict& verdict) {
  std::string text;
  const auto line = [&](std::string_view label, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "  {:<9} {}\n", label, Printable(value));
  };
  if (verdict.file) {
    const plugin::Description& it = verdict.it;
    text = fmt::format("{}: {} {} {}, {}\n", verdict.Word(), plugin::KindText(verdict.file->kind),
                       ShownName(*verdict.file), it.version, Printable(verdict.path.string()));
    line("what", fmt::format("{}; by {}, {}", it.summary, it.vendor, it.license));
    line("ABI",
         fmt::format("{}; this dtrun has {}", it.abi, plugin::AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR)));
  } else {
    text = fmt::format("{}: {}\n", verdict.Word(), Printable(verdict.path.string()));
  }
  if (!verdict.refusal.empty()) line("why", verdict.refusal);
  for (const std::string& problem : verdict.problems) line("problem", problem);
  for (const std::string& warning : verdict.warnings) line("warning", warning);
  if (!verdict.access.empty()) line("file", verdict.access);
  if (verdict.object) {
    const auto foreign = helpers::ForeignSymbols(*verdict.object);
    std::vector<std::string> entries;
    std::ranges::copy_if(verdict.object->exported, std::back_inserter(entries),
                         [&](const std::string& name) { return std::ranges::count(foreign, name) == 0; });
    line("build id", verdict.build_id.empty() ? "none" : verdict.build_id);
    line("layout", fmt::format("64-bit shared object of this machine, {}",
                               verdict.object->nodelete ? "NODELETE" : "not NODELETE"));
    line("symbols", fmt::format("exports {}; foreign: {}",
                                entries.empty() ? "no entry" : fmt::format("{}", fmt::join(entries, ", ")),
                                foreign.size()));
    line("links", fmt::format("{}", fmt::join(verdict.object->needed, ", ")));
  }
  if (!verdict.file) return text;
  if (verdict.it.options.empty()) line("options", "none");
  for (const options::Spec& spec : verdict.it.options)
    line("option", fmt::format("{} ({}): {}", spec.key, options::TypeText(spec), spec.doc));
  line("use", UseOf(verdict));
  if (verdict.refusal.empty() && !verdict.unusable.empty()) line("here", "not usable: " + verdict.unusable);
  return text;
}

}  // namespace

int CheckPlugins(const ConfigArguments& arguments, const std::vector<std::string>& files, bool json) {
  bool good = true;
  Json all = Json::array();
  for (const std::string& file : files) {
    const Verdict verdict = VerdictOf(arguments, PluginFileOf(file, arguments.plugin_dirs));
    good = good && verdict.refusal.empty() && verdict.problems.empty();
    if (json) all.push_back(AsJson(verdict));
    if (!json) WriteForReading(AsText(verdict));
  }
  if (json) WriteOutput(JsonDocument(1, {{"plugins", all}}));
  return good ? 0 : 1;
}

}  // namespace dtrun::cli
