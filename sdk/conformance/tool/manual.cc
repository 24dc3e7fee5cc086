#include "manual.h"

#include <sstream>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "dtrun/abi.h"

namespace dtrun::conformance::tool {
namespace {

constexpr std::string_view kSummary = "tries a plugin of dtrun against the rules of its ABI";
constexpr std::string_view kUsage = "dtrun-conformance --plugin FILE [ARGUMENT ...]";

// Paragraphs.
constexpr std::string_view kAbout[] = {
    "Plays the host: it loads the plugin as dtrun does, and runs the ranks of a backend as threads, or as "
    "processes "
    "where one is killed or stopped; asks a launcher for plans, hosts and commands; and gives a device work. "
    "Each case "
    "runs in a process of its own, so one that crashes, exits or hangs fails alone.",
    "A line for each case says ok, FAILED or skipped, how long it took, and why. A failure is followed by "
    "what was "
    "expected and by the rules of the ABI (docs/abi.md) that are broken. Cases of what a plugin does not "
    "offer are "
    "skipped.",
    "Profiles: messages (send and recv) and host-collectives (these, and collectives in the host's memory) "
    "of backends, "
    "launcher, and devices. Without --profile, all that the kind of the plugin has. device-collectives is "
    "not there "
    "yet.",
    "Exit code: 0 no case failed, 1 one did, 2 the command was wrong or nothing could be tried.",
};

std::string Wrapped(std::string_view text, std::size_t indent, std::size_t width = 100) {
  std::istringstream words{std::string(text)};
  std::string out, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + std::string(indent, ' ') + line + "\n";
}

std::string Typed(const Flag& flag) {
  return std::string(flag.name) + (flag.value == nullptr ? "" : std::string(" ") + flag.value);
}

std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
  return out;
}

}  // namespace

std::string VersionText() {
  return "dtrun-conformance " DTRUN_VERSION ", ABI " + std::to_string(DTRUN_ABI_MAJOR) + "." +
         std::to_string(DTRUN_ABI_MINOR);
}

std::string HelpText() {
  std::string out = "Usage: " + std::string(kUsage) + "\n\n";
  for (const std::string_view paragraph : kAbout) out += Wrapped(paragraph, 0) + "\n";
  out += "Arguments:\n";
  for (const Flag& flag : Flags()) out += "  " + Typed(flag) + "\n" + Wrapped(flag.text, 6);
  return out;
}

std::string ManualPage() {
  std::string out =
      ".\\\" Written by dtrun-conformance itself, from what --help prints.\n"
      ".TH DTRUN\\-CONFORMANCE 1 \"\" \"dtrun " DTRUN_VERSION "\" \"User Commands\"\n.SH NAME\n" +
      Roff("dtrun-conformance - ") + std::string(kSummary) + "\n.SH SYNOPSIS\n.B " + Roff(kUsage) +
      "\n.SH DESCRIPTION\n";
  for (const std::string_view paragraph : kAbout) out += Roff(paragraph) + "\n.PP\n";
  out += ".SH OPTIONS\n";
  for (const Flag& flag : Flags()) {
    out += ".TP\n\\fB" + Roff(flag.name) + "\\fR" +
           (flag.value == nullptr ? "" : " \\fI" + Roff(flag.value) + "\\fR") + "\n" + Roff(flag.text) + "\n";
  }
  return out + ".SH SEE ALSO\n\\fBdtrun\\fR(1), \\fBdtrun\\-plugins\\fR(1)\n";
}

}  // namespace dtrun::conformance::tool
