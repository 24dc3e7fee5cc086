// Binary encoding of messages: an encoder, a decoder, and a reader that splits a byte stream into
// frames.
//
// Numbers are little endian; a flag is one byte, 0 or 1; a text is a u32 size and its bytes; a list
// or map is a u32 count and its entries. Encoder and Decoder have the same members, so a message
// lists its fields once, in a template over either. The reading side enforces the limits: it never
// keeps more than a limit, whatever an untrusted peer sends. Values; each is used by one thread at
// a time.
#pragma once

#include <bit>
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

#include "core/base/result.h"

namespace dtrun {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

class Encoder {
 public:
  static constexpr bool kWrites = true;

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Number(T value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Flag(bool value) { Number(static_cast<std::uint8_t>(value)); }
  void Text(std::string_view value, std::size_t limit);
  void Texts(const std::vector<std::string>& values, std::size_t count_limit, std::size_t limit);
  void Pairs(const std::map<std::string, std::string>& values, std::size_t count_limit, std::size_t limit);

  // Payload returns the bytes alone, Frame puts their size in front.
  std::string Payload() &&;
  std::string Frame() &&;

 private:
  std::string out_ = std::string(sizeof(std::uint32_t), '\0');  // room for the size
};

// After the first error every member leaves its argument unchanged or empty; Finish returns the
// error.
class Decoder {
 public:
  static constexpr bool kWrites = false;
  explicit Decoder(std::string_view in) : in_(in) {}

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Number(T& value) {
    if (in_.size() < sizeof value) return Fail("it ends inside a number");
    std::memcpy(&value, in_.data(), sizeof value);
    in_.remove_prefix(sizeof value);
  }
  void Flag(bool& value);
  void Text(std::string& value, std::size_t limit);
  void Texts(std::vector<std::string>& values, std::size_t count_limit, std::size_t limit);
  // Keys must be strictly ascending, so that a map has exactly one encoding.
  void Pairs(std::map<std::string, std::string>& values, std::size_t count_limit, std::size_t limit);

  // Reports an invalid field value. `problem` is a literal.
  void Fail(const char* problem);

  bool ok() const { return problem_ == nullptr; }
  // Returns "malformed WHAT: ..." unless the fields read so far consumed exactly all bytes.
  Status Finish(std::string_view what) const;

 private:
  std::string_view in_;
  const char* problem_ = nullptr;
};

// The type of a message in a template over Encoder or Decoder.
template <class Coder, class Message>
using Of = std::conditional_t<Coder::kWrites, const Message, Message>;

// Encodes or decodes a list of at most `most` entries, calling `each` for every entry.
template <class Coder, class T, class Each>
void List(Coder& coder, T& values, std::size_t most, Each each) {
  auto count = static_cast<std::uint32_t>(values.size());
  coder.Number(count);
  if constexpr (Coder::kWrites) {
    for (const auto& value : values) each(value);
  } else {
    if (count > most) return coder.Fail("a list is longer than its limit");
    for (std::uint32_t i = 0; i < count && coder.ok(); ++i) each(values.emplace_back());
  }
}

// An error, with its id by name: a reader that does not know an id still knows the code. Decoding bounds its
// text by `most_bytes`.
inline constexpr std::size_t kMaxErrorRanks = 65536;
template <class Coder>
void ErrorFields(Coder& coder, Of<Coder, Error>& error, std::size_t most_bytes) {
  constexpr std::size_t kArguments = 16;
  coder.Number(error.code);
  coder.Number(error.peer);
  coder.Text(error.text, most_bytes);
  std::string id;
  if constexpr (Coder::kWrites) id = error.Id();
  coder.Text(id, most_bytes);
  if constexpr (!Coder::kWrites) error.id = ErrorIdOf(id);
  List(coder, error.ranks, kMaxErrorRanks, [&](auto& rank) { coder.Number(rank); });
  coder.Pairs(error.args, kArguments, most_bytes);
}

// Sets `message` to a default-constructed alternative with that index; false if there is no such
// index.
template <class Variant>
bool MakeAlternative(std::size_t index, Variant& message) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((index == I && (message.template emplace<I>(), true)) || ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>());
}

// Splits a stream of bytes into frames, each a u32 size and that many bytes.
class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}
  void SetLimit(std::size_t limit) { limit_ = limit; }

  void Append(std::string_view bytes);
  // Returns the payload of the next whole frame, valid until the next Append, or nullopt if more
  // bytes are needed. A frame that is empty or larger than the limit is an error, and every later
  // call fails too.
  Result<std::optional<std::string_view>> Next();

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t begin_ = 0;  // first byte not yet returned
};

}  // namespace dtrun
