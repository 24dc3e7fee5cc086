#include "core/store/protocol.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace dtrun::store {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::uint8_t kReplyOp = 64;

// Writer and Reader offer the same members, so that the fields of a message are listed
// once. Limits are the reader's business.
class Writer {
 public:
  static constexpr bool kWrites = true;
  Writer() : out_(sizeof(std::uint32_t), '\0') {}

  template <class T>
  void Number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Flag(bool value) { Number(static_cast<std::uint8_t>(value)); }
  void Text(std::string_view value, std::size_t /*limit*/) {
    Number(static_cast<std::uint32_t>(value.size()));
    out_.append(value);
  }
  void Texts(const std::vector<std::string>& values, std::size_t /*count_limit*/, std::size_t limit) {
    Number(static_cast<std::uint32_t>(values.size()));
    for (const std::string& value : values) Text(value, limit);
  }

  std::string Finish() && {
    const auto size = static_cast<std::uint32_t>(out_.size() - sizeof(std::uint32_t));
    std::memcpy(out_.data(), &size, sizeof size);
    return std::move(out_);
  }

 private:
  std::string out_;
};

class Reader {
 public:
  static constexpr bool kWrites = false;
  explicit Reader(std::string_view in) : in_(in) {}

  template <class T>
  void Number(T& value) {
    if (in_.size() < sizeof value) return Fail("it ends inside a number");
    std::memcpy(&value, in_.data(), sizeof value);
    in_.remove_prefix(sizeof value);
  }
  void Flag(bool& value) {
    std::uint8_t byte = 0;
    Number(byte);
    if (byte > 1) return Fail("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  void Text(std::string& value, std::size_t limit) {
    std::uint32_t size = 0;
    Number(size);
    if (size > limit) return Fail("a text is longer than its limit");
    if (size > in_.size()) return Fail("it ends inside a text");
    value.assign(in_.substr(0, size));
    in_.remove_prefix(size);
  }
  void Texts(std::vector<std::string>& values, std::size_t count_limit, std::size_t limit) {
    std::uint32_t count = 0;
    Number(count);
    if (count > count_limit) return Fail("a list is longer than its limit");
    for (std::uint32_t i = 0; i < count && problem_ == nullptr; ++i) Text(values.emplace_back(), limit);
  }

  Status Finish() const {
    const char* problem = problem_;
    if (problem == nullptr && !in_.empty()) problem = "bytes follow its last field";
    if (problem == nullptr) return {};
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("malformed store message: {}", problem)};
  }

 private:
  void Fail(const char* problem) {
    if (problem_ == nullptr) problem_ = problem;
    in_ = {};
  }
  std::string_view in_;
  const char* problem_ = nullptr;
};

template <class Archive, class Message>
using Of = std::conditional_t<Archive::kWrites, const Message, Message>;

template <class Archive>
void Fields(Archive& a, Of<Archive, Hello>& m) {
  a.Number(m.version);
  a.Text(m.job_key, kMaxHelloBytes);
  a.Number(m.generation);
  a.Number(m.rank);
  a.Flag(m.main);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, Set>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Text(m.value, kMaxValueBytes);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, Get>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Number(m.timeout_ns);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, TryGet>& m) {
  a.Text(m.key, kMaxKeyBytes);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, Add>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Number(m.amount);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, CompareSet>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Flag(m.has_expected);
  a.Text(m.expected, kMaxValueBytes);
  a.Text(m.desired, kMaxValueBytes);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, Erase>& m) {
  a.Text(m.key, kMaxKeyBytes);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, WaitMany>& m) {
  a.Texts(m.keys, kMaxWaitKeys, kMaxKeyBytes);
  a.Number(m.timeout_ns);
}
template <class Archive>
void Fields(Archive&, Of<Archive, Goodbye>&) {}
template <class Archive>
void Fields(Archive& a, Of<Archive, Report>& m) {
  a.Number(m.peer);
  a.Text(m.text, kMaxReportBytes);
}
template <class Archive>
void Fields(Archive& a, Of<Archive, Reply>& m) {
  a.Number(m.id);
  a.Number(m.status);
  a.Number(m.number);
  a.Text(m.value, kMaxValueBytes);
}

// Makes the alternative that `op` names; false for an unknown op.
template <std::size_t... I>
bool MakeBody(std::uint8_t op, Body& body, std::index_sequence<I...>) {
  return ((op == I + 1 && (body.emplace<I>(), true)) || ...);
}

}  // namespace

std::string Encode(const Request& request) {
  Writer writer;
  writer.Number(static_cast<std::uint8_t>(request.body.index() + 1));
  writer.Number(request.id);
  std::visit([&](const auto& message) { Fields(writer, message); }, request.body);
  return std::move(writer).Finish();
}

std::string Encode(const Reply& reply) {
  Writer writer;
  writer.Number(kReplyOp);
  Fields(writer, reply);
  return std::move(writer).Finish();
}

Result<Request> DecodeRequest(std::string_view payload) {
  Reader reader(payload);
  std::uint8_t op = 0;
  Request request;
  reader.Number(op);
  reader.Number(request.id);
  if (!MakeBody(op, request.body, std::make_index_sequence<std::variant_size_v<Body>>())) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("malformed store message: unknown op {}", op)};
  }
  std::visit([&](auto& message) { Fields(reader, message); }, request.body);
  if (Status status = reader.Finish(); !status) return std::move(status).error();
  return request;
}

Result<Reply> DecodeReply(std::string_view payload) {
  Reader reader(payload);
  std::uint8_t op = 0;
  Reply reply;
  reader.Number(op);
  if (op != kReplyOp) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("malformed store message: op {} is not a reply", op)};
  }
  Fields(reader, reply);
  if (Status status = reader.Finish(); !status) return std::move(status).error();
  return reply;
}

void FrameReader::Append(std::string_view bytes) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(bytes);
}

Result<std::optional<std::string_view>> FrameReader::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  std::uint32_t size = 0;
  if (rest.size() < sizeof size) return std::optional<std::string_view>();
  std::memcpy(&size, rest.data(), sizeof size);
  if (size == 0 || size > limit_) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("malformed store message: a frame of {} bytes, allowed are 1 to {}", size, limit_)};
  }
  if (rest.size() - sizeof size < size) return std::optional<std::string_view>();
  begin_ += sizeof size + size;
  return std::optional(rest.substr(sizeof size, size));
}

}  // namespace dtrun::store
