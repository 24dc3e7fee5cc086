#include "tools/dtrun/options_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/options/value.h"
#include "tools/dtrun/completion/man_page.h"

namespace dtrun::cli {
namespace {

using options::Spec;

constexpr std::size_t kWidestValue = 22;

std::string DefaultOf(const Spec& spec) {
  if (spec.required) return "required";
  if (!spec.default_text) return "unset";
  const Result<options::Data> data = options::ParseText(spec, *spec.default_text, "/");
  return data && spec.type != options::Type::kPath ? options::Format(spec, *data) : *spec.default_text;
}

std::string TypeOf(const Spec& spec) {
  std::string text = options::TypeText(spec);
  if (spec.min_text && spec.max_text) text += fmt::format(", {} to {}", *spec.min_text, *spec.max_text);
  return text;
}

// Escapes text for a table cell.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string MeaningOf(const Spec& spec) {
  std::string text = spec.doc;
  if (!spec.long_doc.empty()) text += ". " + spec.long_doc;
  if (!spec.env_alias.empty()) text += fmt::format(" Like {}.", spec.env_alias);
  return text;
}

const char* ScopeWord(int scope) {
  return scope == DTRUN_SCOPE_PROCESS ? "process" : scope == DTRUN_SCOPE_HOST ? "host" : "job";
}

// Converts to JSON types.
Json ValueOf(const Spec& spec, const options::Value& value) {
  const auto to_json = [](const auto& data) -> Json {
    if constexpr (std::is_same_v<std::decay_t<decltype(data)>, std::monostate>)
      return {};
    else
      return data;
  };
  return std::visit(to_json, options::Shown(spec, value.data));
}

}  // namespace

std::string ListOptions(const spec::JobSpec& spec, const std::string& prefix, bool whole) {
  std::vector<const Spec*> listed;
  std::size_t widest = 0;
  const options::Schema rows = spec.schema();
  for (const Spec& row : rows) {
    if (!row.key.starts_with(prefix)) continue;
    listed.push_back(&row);
    widest = std::max(widest, row.key.size());
  }
  std::string out;
  for (const Spec* row : listed) {
    const options::Value& value = spec.Get(row->key);
    const bool given = value.origin.kind != DTRUN_ORIGIN_DEFAULT;
    const std::string text = value.set() && given ? options::Format(*row, value.data) : DefaultOf(*row);
    const bool all = whole || listed.size() == 1 || text.size() <= kWidestValue;
    fmt::format_to(std::back_inserter(out), "{:<{}}  {:<{}}  {}{}\n", row->key, widest,
                   all ? text : Shortened(text, kWidestValue - 3), kWidestValue, row->doc,
                   given ? fmt::format(" ({})", value.origin.place) : "");
  }
  return out;
}

std::string OptionText(const options::Spec& spec) {
  std::string range;
  if (spec.min_text || spec.max_text) {
    range = fmt::format(", {} to {}", spec.min_text.value_or("any"), spec.max_text.value_or("any"));
  }
  const std::string fallback =
      spec.required ? "required"
      : spec.default_text
          ? fmt::format("default {}", spec.default_text->empty() && spec.type == options::Type::kList
                                          ? "[]"
                                          : *spec.default_text)
          : "unset by default";
  std::string text =
      fmt::format("  {}\n      {}\n      {}{}{}, {}{}\n", spec.key, spec.doc, options::TypeText(spec),
                  spec.unit.empty() ? "" : " in " + spec.unit, range, fallback,
                  spec.env_alias.empty() ? "" : fmt::format("; like {}", spec.env_alias));
  if (!spec.long_doc.empty()) text += "      " + Indented(spec.long_doc, "      ") + "\n";
  return text;
}

Json ToJson(const options::Spec& spec) {
  Json out = {{"key", spec.key},
              {"type", options::TypeText(spec)},
              {"doc", spec.doc},
              {"unit", spec.unit},
              {"choices", spec.choices},
              {"since", spec.since},
              {"scope", ScopeWord(spec.scope)},
              {"required", spec.required},
              {"env_alias", spec.env_alias}};
  out["default"] = spec.default_text ? Json(*spec.default_text) : Json();
  out["min"] = spec.min_text ? Json(*spec.min_text) : Json();
  out["max"] = spec.max_text ? Json(*spec.max_text) : Json();
  return out;
}

Json ToJson(const options::Spec& spec, const options::Value& value) {
  Json out = ToJson(spec);
  out["value"] = ValueOf(spec, value);
  out["origin"] = value.origin.place.empty() ? "default" : value.origin.place;
  return out;
}

std::vector<OptionTable> CoreTables() {
  std::vector<OptionTable> tables;
  for (const Spec& spec : spec::CoreSchema()) {
    const std::string table = spec.key.substr(0, spec.key.find('.'));
    const auto found = std::ranges::find(tables, table, &OptionTable::title);
    OptionTable& to = found == tables.end() ? tables.emplace_back(OptionTable{table, "", {}}) : *found;
    to.options.push_back(spec);
  }
  return tables;
}

std::string OptionsPage(const std::vector<OptionTable>& tables) {
  std::string out =
      "# Options\n\n"
      "<!-- Written by `dtrun config list --markdown`; a test compares the two. -->\n\n"
      "Every option that a config may have. Each can be given in four places, of which the last one counts: "
      "the file,\nthe environment (`DTRUN_CONFIG_JOB_NAME` for `job.name`), `--set job.name=NAME`, and for "
      "some "
      "a flag of their own\n([command-line.md](command-line.md)). `dtrun config list` prints this list with "
      "the "
      "values of a job,\n`dtrun config explain KEY` one option with its value and where that came from.\n";
  for (const OptionTable& table : tables) {
    fmt::format_to(std::back_inserter(out), "\n## {}\n{}\n", table.title,
                   table.note.empty() ? "" : "\n" + table.note + "\n");
    out += "| Option | Type | Default | What it is |\n| --- | --- | --- | --- |\n";
    for (const Spec& spec : table.options) {
      fmt::format_to(std::back_inserter(out), "| `{}` | {} | `{}` | {} |\n", spec.key, Cell(TypeOf(spec)),
                     Cell(DefaultOf(spec)), Cell(MeaningOf(spec)));
    }
  }
  return out;
}

std::string OptionsManPage(const std::vector<OptionTable>& tables, const std::string& version) {
  std::string out =
      RoffHead("dtrun.toml", 5, version, "config of a dtrun job") +
      ".SH DESCRIPTION\n"
      "A config is a file in TOML with a name that ends in .toml; \\fBdtrun FILE\\fR runs its job. The "
      "smallest has two lines:\n.PP\n.nf\n  [job]\n  command = [\"python3\", \"train.py\"]\n.fi\n.PP\n"
      "An option can be given in the file, as a variable (DTRUN_CONFIG_JOB_NAME for job.name) and by "
      "\\-\\-set job.name=NAME; the last of these counts. \\fBdtrun config init\\fR writes a config to "
      "change, "
      "\\fBdtrun config check FILE\\fR looks for mistakes. Options of plugins: \\fBdtrun plugins describe "
      "NAME\\fR.\n"
      ".SH OPTIONS\n";
  for (const OptionTable& table : tables) {
    fmt::format_to(std::back_inserter(out), ".SS [{}]\n", RoffLine(table.title));
    for (const Spec& spec : table.options) {
      fmt::format_to(std::back_inserter(out), ".TP\n\\fB{}\\fR ({}; {}{})\n{}\n", RoffLine(spec.key),
                     RoffLine(Cell(TypeOf(spec))), spec.required ? "" : "default ",
                     RoffLine(Cell(DefaultOf(spec))), RoffLine(Cell(MeaningOf(spec))));
    }
  }
  return out + ".SH SEE ALSO\n\\fBdtrun\\fR(1), \\fBdtrun\\-config\\fR(1)\n";
}

}  // namespace dtrun::cli
