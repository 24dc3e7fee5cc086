#include "core/spec/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/number.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/options/text.h"

namespace dtrun::spec {
namespace {

using options::Data;
using options::Spec;
using options::Type;
using Kind = Node::Kind;
using Texts = std::vector<std::string>;

constexpr std::string_view kHostsKey = "cluster.hosts";

// "4" instead of 4.
bool IsNumber(const Node& node) { return node.kind == Kind::kString && IsDigits(node.text); }

// ["python3", "train.py"] for "python3 train.py"; empty if quotes make the split ambiguous.
std::string AsList(const Spec& spec, const std::string& text) {
  constexpr std::size_t kLongest = 100;
  if (text.size() > kLongest || text.find_first_of("\"'\\") != text.npos) return {};
  const char between = Trim(text).find(' ') == std::string::npos ? ',' : ' ';
  Texts items;
  for (const std::string_view item : Split(text, between)) {
    if (!Trim(item).empty()) items.emplace_back(Trim(item));
  }
  return items.empty() ? "" : options::Format(spec, items);
}

// { A = "1" } for ["A=1"].
std::string AsTable(const Spec& spec, const Node& list) {
  std::map<std::string, std::string> table;
  for (const Node& item : list.items) {
    const std::size_t equals = item.text.find('=');
    if (item.kind == Kind::kString && equals != item.text.npos)
      table[item.text.substr(0, equals)] = item.text.substr(equals + 1);
  }
  return table.empty() || table.size() != list.items.size() ? R"({ NAME = "VALUE" })"
                                                            : options::Format(spec, table);
}

// Converts the table of a host, or a member of one, to text: { name = "a", slots = 2 } is "a:2". Empty: it is
// not a host.
std::string AsHost(std::string name, const Node& node) {
  const Node* slots = node.kind == Kind::kTable ? nullptr : &node;
  for (const Member& member : node.members) {
    const bool text = member.value.kind == Kind::kString;
    if (text &&
        (member.key == "name" || member.key == "host" || member.key == "hostname" || member.key == "address"))
      name = member.value.text;
    if (member.key == "slots" || member.key == "gpus" || member.key == "ranks") slots = &member.value;
  }
  if (name.empty() || slots == nullptr) return name;
  if (slots->kind == Kind::kInt) return fmt::format("{}:{}", name, slots->number);
  return IsNumber(*slots) ? fmt::format("{}:{}", name, slots->text) : "";
}

// ["a:2", "b"] for a list of tables, a table of one host, or a table with a member for each host.
std::string AsHosts(const Spec& spec, const Node& node) {
  constexpr std::size_t kMost = 8;
  Texts hosts;
  for (const Node& item : node.items) hosts.push_back(AsHost("", item));
  if (node.kind == Kind::kTable) hosts.push_back(AsHost("", node));
  if (node.kind == Kind::kTable && hosts.back().empty()) {
    hosts.clear();
    for (const Member& member : node.members) hosts.push_back(AsHost(member.key, member.value));
  }
  const bool all = std::ranges::none_of(hosts, &std::string::empty);
  return all && !hosts.empty() && hosts.size() <= kMost ? options::Format(spec, hosts) : R"(["a", "b:4"])";
}

// Converts numbers and booleans to their text.
std::optional<std::string> TextOf(const Node& node) {
  switch (node.kind) {
    case Kind::kString: return node.text;
    case Kind::kInt: return fmt::format("{}", node.number);
    case Kind::kBool: return node.flag ? "true" : "false";
    case Kind::kFloat: return RealText(node.real);
    default: return std::nullopt;
  }
}

Fault WrongType(const Spec& spec, const Node& node) {
  std::string message =
      fmt::format("expected {}; found {}", ExpectedText(spec), FoundText(node, spec.secret));
  const bool list = spec.type == Type::kList || spec.type == Type::kPathList;
  if (list && node.kind == Kind::kString) {
    const std::string items = AsList(spec, node.text);
    message += items.empty() ? "; put it into [ ], one string per item" : "; write " + items;
  }
  if (spec.type == Type::kMap && node.kind == Kind::kList) message += "; write " + AsTable(spec, node);
  const bool time = spec.type == Type::kDuration ||
                    (spec.type == Type::kString && ParseDuration(spec.default_text.value_or("")));
  if (time && node.kind == Kind::kInt && node.number > 0 && !spec.secret)
    message += fmt::format(", did you mean \"{}s\"?", node.number);
  const bool number = spec.type == Type::kInt || spec.type == Type::kUint || spec.type == Type::kFloat;
  if (number && IsNumber(node)) message += "; write it without quotes";
  const bool whole = number || spec.type == Type::kCount || spec.type == Type::kBytes;
  if (whole && node.kind == Kind::kFloat && !spec.secret) {
    const std::string text = RealText(node.real);
    if (text.ends_with(".0")) message += "; write " + text.substr(0, text.size() - 2);
  }
  if (!time && spec.type == Type::kString && TextOf(node)) message += "; quote it";
  if (list && spec.key == kHostsKey && node.kind == Kind::kTable)
    message += "; write hosts = " + AsHosts(spec, node);
  if (spec.type == Type::kBool && node.kind == Kind::kString) {
    const std::string meant = options::BooleanMeant(node.text);
    if (meant == node.text) {
      message += "; write it without quotes";
    } else if (!meant.empty()) {
      message += fmt::format("; write {}, without quotes", meant);
    }
  }
  if (spec.type == Type::kBool && node.kind == Kind::kInt && (node.number == 0 || node.number == 1))
    message += fmt::format(", did you mean {}?", node.number == 1);
  return {"", node.at, std::move(message)};
}

// Of a list or a table with faults the result is not used.
Data ConvertList(const Spec& spec, const Node& node, const std::filesystem::path& folder,
                 std::vector<Fault>& faults) {
  Texts texts;
  if (!node.items.empty() && node.items.front().kind == Kind::kTable) {  // [[cluster.hosts]]
    faults.push_back({"", node.at,
                      fmt::format("expected {}; found a list of tables; write {} = {}", ExpectedText(spec),
                                  spec.key.substr(spec.key.rfind('.') + 1),
                                  spec.key == kHostsKey ? AsHosts(spec, node) : R"(["a", "b"])")});
    return {};
  }
  const bool paths = spec.type == Type::kPathList;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    const std::string part = fmt::format("[{}]", i);
    if (item.kind != Kind::kString || (paths && item.text.empty())) {
      faults.push_back(
          {part, item.at,
           fmt::format("expected {}; found {}{}", paths ? "a path" : "a string", FoundText(item, spec.secret),
                       TextOf(item) && item.kind != Kind::kString ? "; quote it" : "")});
      continue;
    }
    const auto path = paths ? options::ExpandPath(item.text) : item.text;
    if (path) {
      texts.push_back(paths ? (folder / *path).lexically_normal().string() : *path);
    } else {
      faults.push_back({part, item.at, path.error().text});
    }
  }
  return texts;
}

Data ConvertMap(const Spec& spec, const Node& node, std::vector<Fault>& faults) {
  std::map<std::string, std::string> map;
  for (const Member& member : node.members) {
    if (auto text = TextOf(member.value)) {
      map[member.key] = *std::move(text);
      continue;
    }
    faults.push_back({"." + member.key, member.value.at,
                      fmt::format("expected a string, a number, true or false; found {}",
                                  FoundText(member.value, spec.secret || NamesSecret(member.key)))});
  }
  return map;
}

// REQUIRES: Fits(spec.type, node.kind)
Result<Data> ConvertScalar(const Spec& spec, const Node& node, const std::filesystem::path& folder) {
  switch (spec.type) {
    case Type::kBool: return Data(node.flag);
    case Type::kFloat: return Data(node.kind == Kind::kInt ? static_cast<double>(node.number) : node.real);
    case Type::kInt:
    case Type::kUint: return Data(node.number);
    case Type::kCount:
      if (node.kind == Kind::kInt) return Data(node.number);
      return Data(node.text);
    case Type::kBytes:
      if (node.kind == Kind::kInt) return ParseText(spec, fmt::format("{}", node.number), folder);
      return ParseText(spec, node.text, folder);
    default: return ParseText(spec, node.text, folder);
  }
}

}  // namespace

bool Fits(Type type, Kind kind) {
  switch (type) {
    case Type::kBool: return kind == Kind::kBool;
    case Type::kInt:
    case Type::kUint: return kind == Kind::kInt;
    case Type::kFloat: return kind == Kind::kInt || kind == Kind::kFloat;
    case Type::kBytes:
    case Type::kCount: return kind == Kind::kInt || kind == Kind::kString;
    case Type::kString:
    case Type::kEnum:
    case Type::kDuration:
    case Type::kPath: return kind == Kind::kString;
    case Type::kNames: return kind == Kind::kString || kind == Kind::kList;
    case Type::kList:
    case Type::kPathList: return kind == Kind::kList;
    case Type::kMap: return kind == Kind::kTable;
  }
  return false;
}

Data Convert(const Spec& spec, const Node& node, const std::filesystem::path& folder,
             std::vector<Fault>& faults) {
  if (!Fits(spec.type, node.kind)) {
    faults.push_back(WrongType(spec, node));
    return {};
  }
  const std::size_t before = faults.size();
  Result<Data> data = node.kind == Kind::kList    ? Result<Data>(ConvertList(spec, node, folder, faults))
                      : node.kind == Kind::kTable ? Result<Data>(ConvertMap(spec, node, faults))
                                                  : ConvertScalar(spec, node, folder);
  if (faults.size() > before) return {};
  const Status checked = data ? CheckBounds(spec, *data) : Status(data.error());
  if (checked) return *std::move(data);
  const bool quoted = spec.type == Type::kCount && IsNumber(node);
  faults.push_back({"", node.at, checked.error().text + (quoted ? "; write it without quotes" : "")});
  return {};
}

}  // namespace dtrun::spec
