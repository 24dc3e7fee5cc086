// Types with a list of fields (core/wire/coder.h) as JSON: a struct is an object with the fields' names, a
// variant an object with the `kName` of its alternative as "kind" before the alternative's fields. An enum is
// a text if `constexpr std::array EnumNames(E)` names its values from 0 on, otherwise a number. Pure; any
// thread.
#pragma once

#include <fmt/format.h>

#include <array>

#include "core/base/json.h"
#include "core/wire/coder.h"

namespace dtrun::wire {

class JsonWriter {
 public:
  static constexpr bool kWrites = true;

  explicit JsonWriter(Json* out) : out_(*out) {}
  template <class T, class... Limits>
  void operator()(const char* name, const T& value, Limits...) {
    if constexpr ((std::is_same_v<Limits, MayMiss> || ...)) {
      if (IsNothing(value)) return;
    }
    out_[name] = Of(value);
  }
  void Rest(const char* name, std::string_view bytes) { out_[name] = bytes; }
  void Fail(const char* /*problem*/) {}

  template <class T>
  static Json Of(const T& value) {
    if constexpr (requires { EnumNames(value); }) {
      constexpr auto kNames = EnumNames(T{});
      return kNames[static_cast<std::size_t>(value)];
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<std::underlying_type_t<T>>(value);
    } else if constexpr (std::is_constructible_v<std::string_view, const T&> || std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
      return value.count();
    } else {
      return OfClass(value);
    }
  }

 private:
  template <class T>
  static Json OfClass(const T& value) {
    Json out = Json::object();
    JsonWriter writer(&out);
    FieldsOf(writer, value);
    return out;
  }
  template <class T>
  static Json OfClass(const std::vector<T>& list) {
    Json out = Json::array();
    for (const T& entry : list) out.push_back(Of(entry));
    return out;
  }
  static Json OfClass(const std::map<std::string, std::string>& map) { return Json(map); }
  static Json OfClass(const ProcessVariables& map) {
    return Json(ProcessVariables::Map(map.begin(), map.end()));
  }
  template <class A, class B>
  static Json OfClass(const std::pair<A, B>& pair) {
    return Json::array({Of(pair.first), Of(pair.second)});
  }
  template <class T>
  static Json OfClass(const std::optional<T>& maybe) {
    return maybe ? Of(*maybe) : Json(nullptr);
  }
  template <class... T>
  static Json OfClass(const std::variant<T...>& any) {
    Json out = Json::object();
    Visit(
        [&]<class Chosen>(const Chosen& chosen) {
          out["kind"] = Chosen::kName;
          JsonWriter writer(&out);
          FieldsOf(writer, chosen);
        },
        any);
    return out;
  }

  template <class T>
  static bool IsNothing(const T& value) {
    if constexpr (requires { value.empty(); }) {
      return value.empty();
    } else {
      return value == T{};
    }
  }

  Json& out_;
};

template <class T>
Json ToJson(const T& value) {
  return JsonWriter::Of(value);
}

class JsonReader : public Checked {
 public:
  explicit JsonReader(const Json& in) : in_(&in) {}

  template <class T, class... Limits>
  void operator()(const char* name, T& value, Limits... limits) {
    if (!ok()) return;
    field_ = name;
    const auto found = in_->is_object() ? in_->find(name) : in_->end();
    if (found == in_->end()) {
      constexpr bool kMay = (std::is_same_v<Limits, MayMiss> || ...);
      return kMay ? void(value = T{}) : Fail("is missing");
    }
    From(*found, value, limits...);
  }
  void Rest(const char* name, std::string& bytes) { (*this)(name, bytes); }

  template <class T, class... Limits>
  void From(const Json& json, T& value, Limits... limits) {
    if constexpr (requires { EnumNames(value); }) {
      constexpr auto kNames = EnumNames(T{});
      for (std::size_t i = 0; json.is_string() && i < kNames.size(); ++i) {
        if (json.get_ref<const std::string&>() == kNames[i]) return void(value = static_cast<T>(i));
      }
      Fail("is none of its choices");
    } else if constexpr (std::is_same_v<T, bool>) {
      Is(json.is_boolean()) && (value = json.get<bool>());
    } else if constexpr (Number<T>) {
      Numeral(json, value);
      Keep(value, limits...);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!Is(json.is_string())) return;
      value = json.get<std::string>();
      Bounded(value.size(), MostOf(limits...));
      Keep(value, limits...);
    } else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
      std::int64_t count = 0;
      From(json, count, limits...);
      value = T(count);
    } else {
      Class(json, value, limits...);
    }
  }

 private:
  bool Is(bool right) {
    if (!right) Fail("is of another type");
    return ok();
  }
  void Bounded(std::size_t count, std::size_t most) {
    if (count > most) Fail(fmt::format("has {} entries or bytes, more than {}", count, most));
  }
  template <class T>
  void Numeral(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      Numeral(json, number);
      value = static_cast<T>(number);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (Is(json.is_number())) value = json.get<T>();
    } else {
      if (!Is(json.is_number_integer())) return;
      const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                  : std::in_range<T>(json.get<std::int64_t>());
      if (!fits) return Fail("does not fit its type");
      value = json.get<T>();
    }
  }
  template <class T, class... Limits>
  void Class(const Json& json, std::vector<T>& list, Most most, Limits... limits) {
    if (!Is(json.is_array())) return;
    Bounded(json.size(), most.count);
    list.clear();
    for (const Json& entry : json) {
      if (!ok()) return;
      From(entry, list.emplace_back(), limits...);
    }
  }
  template <class... Limits>
  void Class(const Json& json, std::map<std::string, std::string>& map, Most most, Limits... limits) {
    if (!Is(json.is_object())) return;
    Bounded(json.size(), most.count);
    map.clear();
    for (const auto& [key, value] : json.items()) From(value, map[key], limits...);
  }
  template <class... Limits>
  void Class(const Json& json, ProcessVariables& variables, Limits... limits) {
    ProcessVariables::Map map;
    Class(json, map, limits...);
    variables = std::move(map);
  }
  template <class A, class B, class... Limits>
  void Class(const Json& json, std::pair<A, B>& pair, Limits... limits) {
    if (!Is(json.is_array() && json.size() == 2)) return;
    From(json[0], pair.first, limits...);
    From(json[1], pair.second, limits...);
  }
  template <class T, class... Limits>
  void Class(const Json& json, std::optional<T>& maybe, Limits... limits) {
    maybe.reset();
    if (!json.is_null()) From(json, maybe.emplace(), limits...);
  }
  template <class... T, class... Limits>
  void Class(const Json& json, std::variant<T...>& any, Limits...) {
    std::string kind;
    if (json.is_object() && json.contains("kind")) From(json["kind"], kind);
    const bool known = ((kind == T::kName && (any.template emplace<T>(), true)) || ...);
    if (!known) return Fail(fmt::format("is of unknown kind '{}'", kind));
    Visit([&](auto& chosen) { Class(json, chosen); }, any);
  }
  template <class T, class... Limits>
  void Class(const Json& json, T& value, Limits...) {
    if (!Is(json.is_object())) return;
    const Json* const outer = std::exchange(in_, &json);
    FieldsOf(*this, value);
    in_ = outer;
  }

  const Json* in_;
};

// DTRUN_INVALID_ARGUMENT unless `json` is such a value within its limits; unknown members are ignored.
template <class T>
Result<T> FromJson(const Json& json, std::string_view what) {
  JsonReader reader(json);
  T value{};
  reader.From(json, value);
  if (Status whole = reader.Finish(what); !whole) return std::move(whole).error();
  return value;
}

}  // namespace dtrun::wire
