// The one coder of dtrun: a type that travels lists its fields once, and bytes, JSON (core/wire/json.h) and
// the limits of untrusted input follow from that list.
//
//   struct Ended {
//     int rank = 0;
//     std::string why;
//     void Fields(auto& io) {
//       io("rank", rank, wire::kAnyRank);
//       io("why", why, wire::Most{100}, wire::kPrintable);
//     }
//   };
//
// Fields may also be a free function beside the type. It changes nothing when io.kWrites. Fields are
// numbers, enums, flags, texts, durations, and lists, maps, pairs, optionals, variants and structs of them.
//
// In bytes, numbers are little endian; a flag is one byte, 0 or 1; a text is a u32 size and its bytes; a list
// or map is a u32 count and its entries; an optional is a flag and its value; a variant is the u8 index of
// its alternative and the alternative. Values; each is used by one thread at a time.
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/process_variables.h"
#include "core/base/result.h"
#include "core/base/visit.h"
#include "core/wire/limits.h"

namespace dtrun {

inline constexpr std::size_t kMaxErrorRanks = 65536;

// The id goes by name: a reader that does not know an id still knows the code.
void Fields(auto& io, Error& error) {
  std::string id(error.Id());
  io("code", error.code);
  io("peer", error.peer);
  io("text", error.text);
  io("id", id, wire::kMostName);
  if (!io.kWrites) error.id = ErrorIdOf(id);
  io("ranks", error.ranks, wire::Most{kMaxErrorRanks});
  io("args", error.args, wire::Most{16}, wire::kMostName);
}

}  // namespace dtrun

namespace dtrun::wire {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

template <class T>
concept Number = (std::is_arithmetic_v<T> || std::is_enum_v<T>)&&!std::is_same_v<T, bool>;

// Calls the list of fields of `value`; a writer only reads it.
template <class Io, class T>
void FieldsOf(Io& io, const T& value) {
  if constexpr (requires(T & v) { v.Fields(io); }) {
    const_cast<T&>(value).Fields(io);
  } else {
    Fields(io, const_cast<T&>(value));
  }
}

class Writer {
 public:
  static constexpr bool kWrites = true;

  template <class T, class... Limits>
  void operator()(const char* /*name*/, const T& value, Limits...) {
    Value(value);
  }
  // Bytes to the end of the message: its last field.
  void Rest(const char* /*name*/, std::string_view bytes) { out_ += bytes; }
  void Fail(const char* /*problem*/) {}  // a writer's values are its own

  // The bytes alone, or with their size in front as a u32.
  std::string Payload() &&;
  std::string Frame() &&;

 private:
  template <Number T>
  void Value(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Value(bool value) { Value(static_cast<std::uint8_t>(value)); }
  void Value(std::string_view text) {
    Count(text.size());
    out_ += text;
  }
  void Value(const std::string& text) { Value(std::string_view(text)); }
  void Value(std::chrono::nanoseconds time) { Value(std::int64_t{time.count()}); }
  void Value(const std::map<std::string, std::string>& map) { Pairs(map, map.size()); }
  void Value(const ProcessVariables& variables) { Pairs(variables, variables.size()); }
  template <class T>
  void Value(const std::vector<T>& list) {
    Count(list.size());
    for (const T& entry : list) Value(entry);
  }
  template <class A, class B>
  void Value(const std::pair<A, B>& pair) {
    Value(pair.first);
    Value(pair.second);
  }
  template <class T>
  void Value(const std::optional<T>& maybe) {
    Value(maybe.has_value());
    if (maybe) Value(*maybe);
  }
  template <class... T>
  void Value(const std::variant<T...>& any) {
    Value(static_cast<std::uint8_t>(any.index()));
    Visit([this](const auto& chosen) { this->Value(chosen); }, any);
  }
  template <class T>
  requires std::is_class_v<T>
  void Value(const T& value) { FieldsOf(*this, value); }

  void Count(std::size_t count) { Value(static_cast<std::uint32_t>(count)); }
  template <class Map>
  void Pairs(const Map& map, std::size_t count) {
    Count(count);
    for (const auto& [key, value] : map) {
      Value(key);
      Value(value);
    }
  }

  std::string out_ = std::string(sizeof(std::uint32_t), '\0');  // room for the size
};

// The limits as readers of all formats enforce them. After the first error, fields keep their values or are
// empty.
class Checked {
 public:
  static constexpr bool kWrites = false;

  // `problem` begins with a verb: "has no address". The error names the last field that was read.
  void Fail(std::string problem);
  bool ok() const { return problem_.empty(); }
  // "malformed WHAT: FIELD PROBLEM"
  Status Finish(std::string_view what) const;

 protected:
  template <class T, class... Limits>
  void Keep(const T& value, Limits... limits) {
    (Check(value, limits), ...);
  }
  template <class T>
  void Check(const T&, Most) {}
  template <class T>
  void Check(const T&, MayMiss) {}
  template <class T, class Bound>
  void Check(const T& value, Between<Bound> bounds) {
    constexpr bool kUnsigned = std::is_same_v<T, std::uint64_t> && std::is_same_v<Bound, std::uint64_t>;
    using Whole = std::conditional_t<kUnsigned, std::uint64_t, std::int64_t>;
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, Whole>;
    if (static_cast<Wide>(value) >= static_cast<Wide>(bounds.least) &&
        static_cast<Wide>(value) <= static_cast<Wide>(bounds.most))
      return;
    OutOfRange(static_cast<Wide>(value), static_cast<Wide>(bounds.least), static_cast<Wide>(bounds.most));
  }
  void Check(const std::string& text, Printable);

  static constexpr std::size_t MostOf() { return kAny.count; }
  template <class... Rest>
  static constexpr std::size_t MostOf(Most most, Rest...) {
    return most.count;
  }
  template <class Other, class... Rest>
  static constexpr std::size_t MostOf(Other, Rest... rest) {
    return MostOf(rest...);
  }

  const char* field_ = nullptr;

 private:
  void OutOfRange(std::int64_t value, std::int64_t least, std::int64_t most);
  void OutOfRange(std::uint64_t value, std::uint64_t least, std::uint64_t most);
  void OutOfRange(double value, double least, double most);

  std::string problem_;
};

// Sets `message` to a default-constructed alternative with that index; false if there is no such index.
template <class Variant>
bool MakeAlternative(std::size_t index, Variant& message) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((index == I && (message.template emplace<I>(), true)) || ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>());
}

class Reader : public Checked {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class T, class... Limits>
  void operator()(const char* name, T& value, Limits... limits) {
    field_ = name;
    Value(value, limits...);
  }
  void Rest(const char* /*name*/, std::string_view& bytes) { bytes = std::exchange(in_, {}); }
  // Also that the fields were all bytes.
  Status Finish(std::string_view what);

 private:
  template <Number T, class... Limits>
  void Value(T& value, Limits... limits) {
    T read{};
    if (!Take(&read, sizeof read)) return;
    Keep(read, limits...);
    if (ok()) value = read;
  }
  template <class... Limits>
  void Value(bool& value, Limits...) {
    std::uint8_t byte = 0;
    Value(byte, Between{0, 1});
    value = byte == 1;
  }
  template <class... Limits>
  void Value(std::string& text, Limits... limits) {
    Text(text, MostOf(limits...));
    Keep(text, limits...);
  }
  template <class... Limits>
  void Value(std::chrono::nanoseconds& time, Limits... limits) {
    std::int64_t count = 0;
    Value(count, limits...);
    time = std::chrono::nanoseconds(count);
  }
  // A list has to have a limit.
  template <class T, class... Limits>
  void Value(std::vector<T>& list, Most most, Limits... limits) {
    list.clear();
    for (std::uint32_t left = Count(most.count); left > 0 && ok(); --left)
      Value(list.emplace_back(), limits...);
  }
  template <class... Limits>
  void Value(std::map<std::string, std::string>& map, Most most, Limits... limits) {
    Map(map, most.count, MostOf(limits...));
    for (const auto& [key, value] : map) Keep(value, limits...);
  }
  template <class... Limits>
  void Value(ProcessVariables& variables, Most most, Limits... limits) {
    ProcessVariables::Map map;
    Value(map, most, limits...);
    variables = std::move(map);
  }
  template <class A, class B, class... Limits>
  void Value(std::pair<A, B>& pair, Limits... limits) {
    Value(pair.first, limits...);
    Value(pair.second, limits...);
  }
  template <class T, class... Limits>
  void Value(std::optional<T>& maybe, Limits... limits) {
    bool has = false;
    Value(has);
    maybe.reset();
    if (has) Value(maybe.emplace(), limits...);
  }
  template <class... T, class... Limits>
  void Value(std::variant<T...>& any, Limits...) {
    std::uint8_t index = 0;
    Value(index);
    if (!ok()) return;
    if (!MakeAlternative(index, any)) return Fail("is of unknown kind " + std::to_string(index));
    Visit([this](auto& chosen) { this->Value(chosen); }, any);
  }
  template <class T>
  requires std::is_class_v<T>
  void Value(T& value) { FieldsOf(*this, value); }

  bool Take(void* to, std::size_t size);
  std::uint32_t Count(std::size_t most);
  void Text(std::string& text, std::size_t most);
  // Keys must be strictly ascending, so that a map has exactly one encoding.
  void Map(std::map<std::string, std::string>& map, std::size_t most, std::size_t most_text);

  std::string_view in_;
};

template <class T>
std::string Encode(const T& value) {
  Writer writer;
  writer("message", value);
  return std::move(writer).Payload();
}
template <class T>
std::string EncodeFrame(const T& value) {
  Writer writer;
  writer("message", value);
  return std::move(writer).Frame();
}
// DTRUN_INVALID_ARGUMENT unless `bytes` are exactly one such value within its limits. Texts of type
// string_view point into them. `what`: for errors, "message between root and agent".
template <class T>
Result<T> Decode(std::string_view bytes, std::string_view what) {
  Reader reader(bytes);
  T value{};
  reader("message", value);
  if (Status whole = reader.Finish(what); !whole) return std::move(whole).error();
  return value;
}

// Splits a stream of bytes into frames, each a u32 size and that many bytes.
class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}
  void SetLimit(std::size_t limit) { limit_ = limit; }

  void Append(std::string_view bytes);
  // Returns the payload of the next whole frame, valid until the next Append, or nullopt if more bytes are
  // needed. A frame that is empty or larger than the limit is an error, and every later call fails too.
  Result<std::optional<std::string_view>> Next();

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;  // first byte not yet returned
};

}  // namespace dtrun::wire
