#include "core/base/encoding.h"

#include <fmt/format.h>

#include <utility>

namespace dtrun {
namespace {

// A buffer larger than this is freed after use.
constexpr std::size_t kKeptBytes = 1 << 20;

}  // namespace

void Encoder::Text(std::string_view value, std::size_t /*limit*/) {
  Number(static_cast<std::uint32_t>(value.size()));
  out_.append(value);
}

void Encoder::Texts(const std::vector<std::string>& values, std::size_t /*count_limit*/, std::size_t limit) {
  Number(static_cast<std::uint32_t>(values.size()));
  for (const std::string& value : values) Text(value, limit);
}

void Encoder::Pairs(const std::map<std::string, std::string>& values, std::size_t /*count_limit*/,
                    std::size_t limit) {
  Number(static_cast<std::uint32_t>(values.size()));
  for (const auto& [key, value] : values) {
    Text(key, limit);
    Text(value, limit);
  }
}

std::string Encoder::Payload() && {
  out_.erase(0, sizeof(std::uint32_t));
  return std::move(out_);
}

std::string Encoder::Frame() && {
  const auto size = static_cast<std::uint32_t>(out_.size() - sizeof(std::uint32_t));
  std::memcpy(out_.data(), &size, sizeof size);
  return std::move(out_);
}

void Decoder::Flag(bool& value) {
  std::uint8_t byte = 0;
  Number(byte);
  if (byte > 1) return Fail("a flag is neither 0 nor 1");
  value = byte == 1;
}

void Decoder::Text(std::string& value, std::size_t limit) {
  std::uint32_t size = 0;
  Number(size);
  if (size > limit) return Fail("a text is longer than its limit");
  if (size > in_.size()) return Fail("it ends inside a text");
  value.assign(in_.substr(0, size));
  in_.remove_prefix(size);
}

void Decoder::Texts(std::vector<std::string>& values, std::size_t count_limit, std::size_t limit) {
  std::uint32_t count = 0;
  Number(count);
  if (count > count_limit) return Fail("a list is longer than its limit");
  for (std::uint32_t i = 0; i < count && ok(); ++i) Text(values.emplace_back(), limit);
}

void Decoder::Pairs(std::map<std::string, std::string>& values, std::size_t count_limit, std::size_t limit) {
  std::uint32_t count = 0;
  Number(count);
  if (count > count_limit) return Fail("a map is longer than its limit");
  for (std::uint32_t i = 0; i < count && ok(); ++i) {
    std::string key, value;
    Text(key, limit);
    Text(value, limit);
    if (!values.empty() && key <= values.rbegin()->first) return Fail("the keys of a map do not ascend");
    values.emplace_hint(values.end(), std::move(key), std::move(value));
  }
}

void Decoder::Fail(const char* problem) {
  if (problem_ == nullptr) problem_ = problem;
  in_ = {};
}

Status Decoder::Finish(std::string_view what) const {
  const char* problem = problem_;
  if (problem == nullptr && !in_.empty()) problem = "bytes follow its last field";
  if (problem == nullptr) return {};
  return Error{DTRUN_INVALID_ARGUMENT, fmt::format("malformed {}: {}", what, problem)};
}

void FrameReader::Append(std::string_view bytes) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  if (buffer_.empty() && buffer_.capacity() > kKeptBytes) std::string().swap(buffer_);
  buffer_.append(bytes);
}

Result<std::optional<std::string_view>> FrameReader::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  std::uint32_t size = 0;
  if (rest.size() < sizeof size) return std::optional<std::string_view>();
  std::memcpy(&size, rest.data(), sizeof size);
  if (size == 0 || size > limit_) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("a frame has {} bytes; 1 to {} are allowed", size, limit_)};
  }
  if (rest.size() - sizeof size < size) return std::optional<std::string_view>();
  begin_ += sizeof size + size;
  return std::optional(rest.substr(sizeof size, size));
}

}  // namespace dtrun
