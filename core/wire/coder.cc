#include "core/wire/coder.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrun::wire {
namespace {

// A buffer larger than this is freed after use.
constexpr std::size_t kKeptBytes = 1 << 20;

}  // namespace

std::string Writer::Payload() && {
  out_.erase(0, sizeof(std::uint32_t));
  return std::move(out_);
}

std::string Writer::Frame() && {
  const auto size = static_cast<std::uint32_t>(out_.size() - sizeof(std::uint32_t));
  std::memcpy(out_.data(), &size, sizeof size);
  return std::move(out_);
}

void Checked::Fail(std::string problem) {
  if (!ok()) return;
  problem_ = field_ == nullptr ? std::move(problem) : fmt::format("{} {}", field_, problem);
}

Status Checked::Finish(std::string_view what) const {
  if (ok()) return {};
  return Error::Of(DTRUN_INVALID_ARGUMENT, "malformed {}: {}", what, problem_);
}

void Checked::Check(const std::string& text, Printable) {
  const bool printable =
      std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (!printable) Fail("has control characters");
}

void Checked::OutOfRange(std::int64_t value, std::int64_t least, std::int64_t most) {
  Fail(fmt::format("{} is not from {} to {}", value, least, most));
}

void Checked::OutOfRange(std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  Fail(fmt::format("{} is not from {} to {}", value, least, most));
}

void Checked::OutOfRange(double value, double least, double most) {
  Fail(fmt::format("{} is not from {} to {}", value, least, most));
}

Status Reader::Finish(std::string_view what) {
  field_ = nullptr;
  if (!in_.empty()) Fail("bytes follow its last field");
  return Checked::Finish(what);
}

bool Reader::Take(void* to, std::size_t size) {
  if (ok() && in_.size() < size) Fail("is cut off");
  if (!ok()) return false;
  std::memcpy(to, in_.data(), size);
  in_.remove_prefix(size);
  return true;
}

std::uint32_t Reader::Count(std::size_t most) {
  std::uint32_t count = 0;
  if (!Take(&count, sizeof count)) return 0;
  if (count > most) Fail(fmt::format("has {} entries or bytes, more than {}", count, most));
  return ok() ? count : 0;
}

void Reader::Text(std::string& text, std::size_t most) {
  const std::uint32_t size = Count(most);
  if (size > in_.size()) Fail("is cut off");
  if (!ok()) return text.clear();
  text.assign(in_.substr(0, size));
  in_.remove_prefix(size);
}

void Reader::Map(std::map<std::string, std::string>& map, std::size_t most, std::size_t most_text) {
  map.clear();
  for (std::uint32_t left = Count(most); left > 0 && ok(); --left) {
    std::string key, value;
    Text(key, most_text);
    Text(value, most_text);
    if (!map.empty() && key <= map.rbegin()->first) return Fail("has keys that do not ascend");
    map.emplace_hint(map.end(), std::move(key), std::move(value));
  }
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
    return Error::Of(DTRUN_INVALID_ARGUMENT, "a frame has {} bytes; 1 to {} are allowed", size, limit_);
  }
  if (rest.size() - sizeof size < size) return std::optional<std::string_view>();
  begin_ += sizeof size + size;
  return std::optional(rest.substr(sizeof size, size));
}

}  // namespace dtrun::wire
