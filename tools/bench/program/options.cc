#include "tools/bench/program/options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "core/base/fd.h"
#include "core/base/text.h"
#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"
#include "tools/bench/program/sizes.h"

namespace dtrun::bench {
namespace {

Error Wrong(std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; }

Status InRange(const char* option, int value, int lowest, int highest) {
  if (value >= lowest && value <= highest) return {};
  return Wrong(fmt::format("{} {}: expected {} to {}", option, value, lowest, highest));
}

// Splits "a,b" into words, each from `known` and unique.
Result<std::vector<std::string>> Words(const char* option, std::string_view text,
                                       const std::vector<std::string>& known) {
  std::vector<std::string> words;
  for (const std::string_view one : Split(text, ',')) {
    const std::string word(one);
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      const auto nearest = Nearest(word, known);
      return Wrong(
          fmt::format("{} '{}'{}; expected one or more of {}", option, word,
                      nearest ? fmt::format(" is unknown (did you mean '{}'?)", *nearest) : " is unknown",
                      fmt::join(known, ",")));
    }
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

std::vector<std::string> InstalledBackends(const std::vector<std::string>& plugin_dirs) {
  std::vector<std::string> names;
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath(plugin_dirs, {}))) {
    if (file.kind == plugin::Kind::kBackend) names.push_back(file.name);
  }
  return names;
}

// Checks without changing the file or leaving an empty one.
Status Writable(const std::string& file) {
  if (file.empty()) return {};
  const bool existed = ::access(file.c_str(), F_OK) == 0;
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) return Error::System(fmt::format("write '{}'", file), errno);
  if (!existed) ::unlink(file.c_str());
  return {};
}

Status CheckNumbers(const Arguments& given) {
  if (Status s = InRange("--np", given.ranks, 1, 4096); !s) return s;
  if (Status s = InRange("--rounds", given.rounds, 1, 100'000); !s) return s;
  if (Status s = InRange("--warmup", given.warmup, 0, 1'000'000); !s) return s;
  if (!given.seconds || (*given.seconds > 0 && *given.seconds <= 86'400)) return {};
  return Wrong(fmt::format("--seconds {}: expected more than 0, and at most a day", *given.seconds));
}

Status CheckFiles(const Arguments& given) {
  if (!given.plot.empty() && !given.plot.ends_with(".svg") && !given.plot.ends_with(".html")) {
    return Wrong(fmt::format("--plot '{}': the name says the format; end it in .svg or .html", given.plot));
  }
  if (Status s = Writable(given.json); !s) return s;
  return Writable(given.plot);
}

std::vector<Shape> Shapes(const Request& request, const std::vector<std::uint64_t>& sizes) {
  std::vector<Shape> shapes;
  for (const std::uint64_t size : sizes) {
    const Shape shape =
        ShapeOf(request.operation, static_cast<std::uint64_t>(request.ranks), size, request.element.size);
    if (shapes.empty() || shapes.back().bytes != shape.bytes) shapes.push_back(shape);
  }
  return shapes;
}

std::vector<std::string> SplitAtSpaces(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// "KEY=VALUE" or "BACKEND:KEY=VALUE".
Result<Set> ParseSet(const std::string& text, const std::vector<std::string>& backends) {
  const std::string key = text.substr(0, text.find('='));
  const std::size_t colon = key.find(':');
  if (colon == key.npos) return Set{"", text};
  const std::string backend = key.substr(0, colon);
  if (std::find(backends.begin(), backends.end(), backend) == backends.end()) {
    return Wrong(fmt::format("--set '{}': backend '{}' is not measured; expected one of --backend {}", text,
                             backend, fmt::join(backends, ",")));
  }
  return Set{backend, text.substr(colon + 1)};
}

// Checks how ranks are started.
Status CheckStart(const Arguments& given, Request& request) {
  request.wrap = SplitAtSpaces(given.wrap);
  request.mpirun = SplitAtSpaces(given.mpirun);
  if (request.mpirun.empty()) return Wrong("--mpirun '': expected a command that starts ranks of MPI");
  for (const std::string& text : given.sets) {
    auto set = ParseSet(text, request.backends);
    if (!set) return set.error();
    request.sets.push_back(*std::move(set));
  }
  return {};
}

// Checks the options that name things.
Status CheckNames(const Arguments& given, Request& request) {
  auto backends = Words("--backend", plugin::FileForm(given.backends), InstalledBackends(given.plugin_dirs));
  if (!backends) return backends.error();
  request.backends = *std::move(backends);
  auto locals = Words("--local", given.locals, {"shm", "none"});
  if (!locals) return locals.error();
  request.locals = *std::move(locals);
  const std::vector<std::string> peers = {"raw-gloo", "raw-mpi", "raw-ucx", "torch-gloo"};
  if (given.peers == "all") {
    request.peers = peers;
  } else if (given.peers != "none") {
    auto chosen = Words("--peers", given.peers, peers);
    if (!chosen) return chosen.error();
    request.peers = *std::move(chosen);
  }
  if (given.buffers == "private") request.registered = {false};
  if (given.buffers == "registered") request.registered = {true};
  if (given.buffers == "both") request.registered = {false, true};
  if (!request.registered.empty()) return {};
  return Wrong(fmt::format("--buffers '{}': expected private, registered or both", given.buffers));
}

}  // namespace

Result<Request> Check(const Arguments& given) {
  Request request;
  const Result<Operation> operation = ParseOperation(given.operation);
  if (!operation) return operation.error();
  request.operation = *operation;
  const Result<Element> element = ParseElement(given.dtype);
  if (!element) return element.error();
  request.element = *element;
  if (Status s = CheckNumbers(given); !s) return s.error();
  request.ranks = given.ranks;
  request.rounds = given.rounds;
  request.warmup = given.warmup;
  if (request.operation == Operation::kSendrecv && given.ranks < 2) {
    return Wrong("sendrecv needs two ranks, because a rank does not send to itself; give --np 2 or more");
  }
  const auto sizes = ParseSizes(given.sizes, static_cast<std::uint64_t>(std::max(given.factor, 0)));
  if (!sizes) return sizes.error();
  request.shapes = Shapes(request, *sizes);
  request.seconds = given.seconds.value_or(kSecondsPerSize * static_cast<double>(request.shapes.size()));
  if (Status s = CheckNames(given, request); !s) return s.error();
  if (Status s = CheckStart(given, request); !s) return s.error();
  if (Status s = CheckFiles(given); !s) return s.error();
  request.json = given.json;
  request.plot = given.plot;
  request.plugin_dirs = given.plugin_dirs;
  return request;
}

}  // namespace dtrun::bench
