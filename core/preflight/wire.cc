#include <fmt/format.h>

#include "core/base/json.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Texts of plugins need not be UTF-8.
Level LevelNamed(const std::string& name) {
  for (const Level level : {Level::kNotHere, Level::kOk, Level::kWarning}) {
    if (name == LevelName(level)) return level;
  }
  return Level::kProblem;
}

// Reads `text` with `read`, which may throw nlohmann exceptions.
template <class T, class Read>
Result<T> Parse(const std::string& text, const char* what, Read read) {
  try {
    return read(ParseJson(text));
  } catch (const Json::exception& exception) {
    return Error{DTRUN_INTERNAL, fmt::format("the {} of a host cannot be read: {}", what, exception.what())};
  }
}

Json Encode(const ModuleRequest& modules) {
  return {{"names", modules.names},
          {"interpreter", modules.interpreter},
          {"folder", modules.folder},
          {"variables", modules.variables}};
}

}  // namespace

std::string Encode(const Request& request) {
  Json backends = Json::array();
  for (const BackendRequest& one : request.backends) {
    backends.push_back({{"name", one.name},
                        {"path", one.path},
                        {"file_id", one.file_id},
                        {"options", one.options_json},
                        {"why_not", one.why_not},
                        {"wanted", one.wanted},
                        {"pmix", one.pmix},
                        {"needed", one.needed}});
  }
  return JsonLine(Json{{"backends", backends},
                       {"host_count", request.host_count},
                       {"local_ranks", request.local_ranks},
                       {"modules", Encode(request.modules)},
                       {"checks", request.checks},
                       {"host_names", request.host_names},
                       {"host", request.host},
                       {"master_port", request.master_port},
                       {"program", request.program},
                       {"folder", request.folder},
                       {"search_path", request.search_path},
                       {"variables", request.variables}});
}

Result<Request> DecodeRequest(const std::string& text) {
  return Parse<Request>(text, "preflight request", [](const Json& json) {
    Request request;
    for (const Json& one : json.at("backends")) {
      BackendRequest& backend = request.backends.emplace_back();
      one.at("name").get_to(backend.name);
      one.at("path").get_to(backend.path);
      one.at("file_id").get_to(backend.file_id);
      one.at("options").get_to(backend.options_json);
      one.at("why_not").get_to(backend.why_not);
      one.at("wanted").get_to(backend.wanted);
      one.at("pmix").get_to(backend.pmix);
      backend.needed = one.value("needed", false);
    }
    json.at("host_count").get_to(request.host_count);
    json.at("local_ranks").get_to(request.local_ranks);
    const Json& modules = json.at("modules");
    modules.at("names").get_to(request.modules.names);
    modules.at("interpreter").get_to(request.modules.interpreter);
    modules.at("folder").get_to(request.modules.folder);
    modules.at("variables").get_to(request.modules.variables);
    json.at("checks").get_to(request.checks);
    json.at("host_names").get_to(request.host_names);
    json.at("host").get_to(request.host);
    json.at("master_port").get_to(request.master_port);
    json.at("program").get_to(request.program);
    json.at("folder").get_to(request.folder);
    json.at("search_path").get_to(request.search_path);
    json.at("variables").get_to(request.variables);
    return request;
  });
}

std::string Encode(const Answer& answer) {
  Json backends = Json::array();
  for (const BackendAnswer& one : answer.backends)
    backends.push_back({{"name", one.name},
                        {"why_not", one.why_not},
                        {"library", one.library},
                        {"facts", one.info.facts},
                        {"env", one.info.env},
                        {"file_id", one.info.file_id}});
  Json checks = Json::array();
  for (const Check& one : answer.checks) {
    checks.push_back(
        {{"topic", one.topic}, {"level", LevelName(one.level)}, {"what", one.what}, {"fix", one.fix}});
  }
  return JsonLine(Json{{"backends", backends},
                       {"checks", checks},
                       {"missing_modules", answer.missing_modules},
                       {"clock_seconds", answer.clock_seconds}});
}

Result<Answer> DecodeAnswer(const std::string& text) {
  return Parse<Answer>(text, "answer", [](const Json& json) {
    if (json.contains("error"))
      return Result<Answer>(Error{DTRUN_INTERNAL, json.at("error").get<std::string>()});
    Answer answer;
    for (const Json& one : json.at("backends")) {
      BackendAnswer& backend = answer.backends.emplace_back();
      one.at("name").get_to(backend.name);
      one.at("why_not").get_to(backend.why_not);
      one.at("library").get_to(backend.library);
      one.at("facts").get_to(backend.info.facts);
      one.at("env").get_to(backend.info.env);
      one.at("file_id").get_to(backend.info.file_id);
    }
    for (const Json& one : json.at("checks")) {
      Check& check = answer.checks.emplace_back();
      one.at("topic").get_to(check.topic);
      check.level = LevelNamed(one.at("level").get<std::string>());
      one.at("what").get_to(check.what);
      one.at("fix").get_to(check.fix);
    }
    json.at("missing_modules").get_to(answer.missing_modules);
    json.at("clock_seconds").get_to(answer.clock_seconds);
    return Result<Answer>(std::move(answer));
  });
}

std::string RunPreflight(const std::string& text, const std::vector<std::string>& environment) {
  const Result<Request> request = DecodeRequest(text);
  if (!request) return JsonLine(Json{{"error", request.error().text}});
  return Encode(RunPreflight(*request, environment));
}

}  // namespace dtrun::preflight
