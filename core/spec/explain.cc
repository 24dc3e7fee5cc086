#include <fmt/format.h>

#include "core/base/text.h"
#include "core/options/text.h"
#include "core/spec/lookup.h"
#include "core/spec/read.h"

namespace dtrun::spec {
namespace {

constexpr std::size_t kMostOfAKey = 80;  // bytes shown of a key that does not exist

using options::Spec;

std::string OriginText(const options::Origin& origin) {
  switch (origin.kind) {
    case DTRUN_ORIGIN_FILE: return origin.place;
    case DTRUN_ORIGIN_ENVIRONMENT: return origin.place + " in the environment";
    case DTRUN_ORIGIN_COMMAND_LINE:
      return origin.place == "command line" ? origin.place : origin.place + " on the command line";
    default: return "default";
  }
}

std::string ScopeText(int scope) {
  switch (scope) {
    case DTRUN_SCOPE_PROCESS: return "process: may differ between ranks";
    case DTRUN_SCOPE_HOST: return "host: may differ between hosts";
    default: return "job: equal on all ranks";
  }
}

std::string Range(const Spec& spec) {
  if (spec.min_text && spec.max_text) return fmt::format("{} to {}", *spec.min_text, *spec.max_text);
  if (spec.min_text) return fmt::format("at least {}", *spec.min_text);
  return spec.max_text ? fmt::format("at most {}", *spec.max_text) : "";
}

std::string DefaultText(const Spec& spec) {
  if (spec.required) return "none: a value is required";
  if (!spec.default_text) return "unset";
  const Result<options::Data> data = ParseText(spec, *spec.default_text, "/");
  return data ? Format(spec, *data) : *spec.default_text;
}

std::string Notes(const Spec& spec) {
  std::string notes;
  if (!spec.replaced_by.empty()) notes += fmt::format("deprecated: use {}", spec.replaced_by);
  if (!spec.former_key.empty()) notes += fmt::format("was {}, which still works", spec.former_key);
  if (spec.experimental) notes += notes.empty() ? "experimental" : ", experimental";
  if (spec.must_exist) notes += notes.empty() ? "the path must exist" : ", the path must exist";
  return notes;
}

void AddLine(std::string& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out += fmt::format("  {:<9} {}\n", name, text);
}

std::string ExplainOption(const Spec& spec, const options::Value& value) {
  std::string out = fmt::format("{}: {}\n", spec.key, spec.doc);
  AddLine(out, "value", Format(spec, value.data));
  AddLine(out, "origin", OriginText(value.origin));
  AddLine(out, "type", TypeText(spec));
  AddLine(out, "default", DefaultText(spec));
  AddLine(out, "range", Range(spec));
  AddLine(out, "unit", spec.unit);
  AddLine(out, "scope", ScopeText(spec.scope));
  AddLine(out, "since", spec.since);
  AddLine(out, "read by", spec.reader);
  AddLine(out, "variable", EnvironmentName(spec.key));
  AddLine(out, "same as", spec.env_alias);
  AddLine(out, "note", Notes(spec));
  if (!spec.long_doc.empty()) out += fmt::format("\n{}\n", spec.long_doc);
  return out;
}

std::string ExplainTable(const options::Schema& schema, const std::string& table) {
  std::string out = fmt::format("{}: a table\n", table);
  for (const Spec& spec : schema) {
    if (spec.key.starts_with(table + ".")) out += fmt::format("  {}: {}\n", spec.key, spec.doc);
  }
  return out;
}

}  // namespace

Result<std::string> Explain(const JobSpec& spec, std::string_view key) {
  if (const Spec* row = spec.Find(key)) return ExplainOption(*row, spec.Get(row->key));
  const options::Schema schema = spec.schema();
  for (const Spec& row : schema) {
    if (row.type == options::Type::kMap && key.starts_with(row.key + "."))
      return ExplainOption(row, spec.Get(row.key));
  }
  if (IsTable(schema, key)) return ExplainTable(schema, std::string(key));
  return Error::Of(DTRUN_NOT_FOUND, "unknown option '{}'; {}", Printable(key.substr(0, kMostOfAKey)),
                   UnknownHint(schema, std::string(key), true, ""));
}

}  // namespace dtrun::spec
