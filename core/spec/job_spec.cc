#include "core/spec/job_spec.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/spec/lookup.h"

namespace dtrun::spec {
namespace {

struct Declared {
  options::Schema rows;
  std::vector<const AnyField*> fields;  // in the first Tables
};

Declared& Declarations() {
  static Declared declared;
  return declared;
}

// The only instance that is built from the declarations; every other one is a copy.
const Tables& First() {
  static const Tables kFirst;
  return kFirst;
}

}  // namespace

AnyField::AnyField(Row&& row, options::Type type) : index_(Declarations().rows.size()) {
  row.spec.type = type;
  if (row.spec.default_text) {
    auto data = ParseText(row.spec, *row.spec.default_text, "/");
    if (!data) std::abort();
    value.data = *std::move(data);
  }
  Declarations().rows.push_back(std::move(row.spec));
  Declarations().fields.push_back(this);
}

const options::Spec& AnyField::row() const { return Declarations().rows[index_]; }

const options::Schema& CoreSchema() {
  First();
  return Declarations().rows;
}

std::string EnvironmentName(std::string_view key) {
  std::string name("DTRUN_CONFIG_");
  for (const char c : key) name += c == '.' || c == '-' ? '_' : ToUpper(c);
  return name;
}

dtrun_options PluginOptions::Snapshot() const {
  dtrun_options options;
  const std::string prefix = kind + ".options.";
  for (const options::Spec& row : schema) {
    options::Spec own = row;
    own.key.erase(0, prefix.size());
    options.Set(std::move(own), values.find(row.key)->second);
  }
  for (const PluginOptions& one : wrapped) {
    options.entries.find(one.named_by.substr(prefix.size()))->second.wrapped =
        std::make_shared<const dtrun_options::Wrapped>(
            dtrun_options::Wrapped{one.name, one.path, one.file_id, one.Snapshot()});
  }
  return options;
}

JobSpec::JobSpec() : Tables(First()) {}

options::Schema JobSpec::schema() const {
  options::Schema all = CoreSchema();
  all.insert(all.end(), launcher_options.schema.begin(), launcher_options.schema.end());
  if (!backend_options.empty()) {
    const options::Schema& first = backend_options.front().schema;
    all.insert(all.end(), first.begin(), first.end());
  }
  all.insert(all.end(), below.schema.begin(), below.schema.end());
  return all;
}

std::string PluginOptions::OwnKey(std::string_view key) const {
  return fmt::format("{}.{}.{}", kind, name, key.substr(kind.size() + std::string_view(".options.").size()));
}

AnyField* JobSpec::FieldOf(std::string_view key) {
  const options::Spec* row = FindSpec(CoreSchema(), key);
  if (row == nullptr) return nullptr;
  const auto index = static_cast<std::size_t>(row - CoreSchema().data());
  // A field lies in this copy where it lies in the first one.
  const auto* const field = reinterpret_cast<const char*>(Declarations().fields[index]);
  const auto offset = field - reinterpret_cast<const char*>(&First());
  return reinterpret_cast<AnyField*>(reinterpret_cast<char*>(static_cast<Tables*>(this)) + offset);
}

const options::Spec* JobSpec::Find(std::string_view key) const {
  if (const options::Spec* row = FindSpec(CoreSchema(), key)) return row;
  if (const options::Spec* row = FindSpec(launcher_options.schema, key)) return row;
  if (const options::Spec* row = FindSpec(below.schema, key)) return row;
  return backend_options.empty() ? nullptr : FindSpec(backend_options.front().schema, key);
}

const options::Value& JobSpec::Get(std::string_view key) const {
  if (const AnyField* field = const_cast<JobSpec*>(this)->FieldOf(key)) return field->value;
  const auto of_launcher = launcher_options.values.find(key);
  if (of_launcher != launcher_options.values.end()) return of_launcher->second;
  if (const auto of_below = below.values.find(key); of_below != below.values.end()) return of_below->second;
  if (backend_options.empty()) std::abort();
  const auto of_backend = backend_options.front().values.find(key);
  if (of_backend == backend_options.front().values.end()) std::abort();
  return of_backend->second;
}

const std::string& JobSpec::PlaceOf(const AnyField& table, const std::string& name) const {
  const auto found = entry_places.find(table.key() + "." + name);
  return found == entry_places.end() || table.value.origin.kind != DTRUN_ORIGIN_FILE ? table.place()
                                                                                     : found->second;
}

const PluginOptions* JobSpec::OptionsOf(std::string_view backend) const {
  for (const PluginOptions& one : backend_options) {
    if (one.name == backend) return &one;
  }
  return nullptr;
}

}  // namespace dtrun::spec
