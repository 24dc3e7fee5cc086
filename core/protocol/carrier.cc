#include "core/protocol/carrier.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/number.h"

namespace dtrun::protocol {
namespace {

constexpr std::string_view kLinkMark = "dtrun-link ";
constexpr std::array<std::string_view, 4> kKinds = {"here", "open", "data", "end"};
// Bytes of unsent lines above which the socket is not read.
constexpr std::size_t kMostQueued = 1 << 20;

std::string ToBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0 || text.empty()) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  if (::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(text.data()),
                        static_cast<int>(text.size())) < 0)
    return std::nullopt;
  bytes.erase(bytes.size() - (text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0));
  return bytes;
}

bool IsAddress(const std::string& text) {
  return text.size() < 100 &&
         text.find_first_not_of("0123456789abcdefABCDEF.:[]%_-ghijklmnopqrstuvwxyz") == std::string::npos;
}

}  // namespace

std::string ToLine(const Carried& carried) {
  const std::string& text = carried.text;
  return fmt::format("{}{} {} {} {}\n", kLinkMark, carried.host, carried.link,
                     kKinds[static_cast<std::size_t>(carried.kind)],
                     carried.kind == Carried::Kind::kData ? ToBase64(text) : text);
}

std::optional<Carried> ParseCarried(std::string_view line) {
  if (!line.starts_with(kLinkMark)) return std::nullopt;
  line.remove_prefix(kLinkMark.size());
  Carried carried;
  for (int* const number : {&carried.host, &carried.link}) {
    const std::optional<int> taken = TakeNumber<int>(&line);
    if (!taken || !line.starts_with(' ')) return std::nullopt;
    *number = *taken;
    line.remove_prefix(1);
  }
  const std::string_view word = line.substr(0, line.find(' '));
  const auto* const kind = std::ranges::find(kKinds, word);
  if (kind == kKinds.end()) return std::nullopt;
  carried.kind = static_cast<Carried::Kind>(kind - kKinds.begin());
  line.remove_prefix(std::min(word.size() + 1, line.size()));
  if (carried.kind != Carried::Kind::kData) {
    carried.text = line;
    return carried;
  }
  auto bytes = FromBase64(line);
  if (!bytes) return std::nullopt;
  carried.text = *std::move(bytes);
  return carried;
}

Carrier::Carrier(asio::io_context& loop, int host, Wire wire)
    : loop_(loop), host_(host), wire_(std::move(wire)) {}

Result<UniqueFd> Carrier::Open(int link) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::System("create a pair of sockets", errno);
  }
  Close();
  link_ = link;
  socket_ = std::make_shared<Socket>(loop_, ends[0]);
  ended_ = finished_ = false;
  Read();
  return UniqueFd(ends[1]);
}

void Carrier::Close() {
  socket_.reset();
  incoming_.clear();
  reading_ = delivering_ = false;
}

void Carrier::Read() {
  if (socket_ == nullptr || reading_ || finished_ || wire_.queued() > kMostQueued) return;
  reading_ = true;
  socket_->async_wait(Socket::wait_read, [this, weak = std::weak_ptr(socket_)](const error_code& error) {
    if (error || weak.expired()) return;
    reading_ = false;
    ReadOnce();
  });
}

void Carrier::ReadOnce() {
  std::array<char, 16 * kCarriedBytes> bytes;
  const ssize_t size = ::recv(socket_->native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Read();
  if (size <= 0) {  // incoming bytes are still delivered
    finished_ = true;
    return wire_.send(ToLine({Carried::Kind::kEnd, host_, link_, {}}));
  }
  const std::string_view all(bytes.data(), static_cast<std::size_t>(size));
  std::string lines;
  for (std::size_t at = 0; at < all.size(); at += kCarriedBytes) {
    lines += ToLine({Carried::Kind::kData, host_, link_, std::string(all.substr(at, kCarriedBytes))});
  }
  wire_.send(lines);
  Read();
}

void Carrier::Take(const Carried& carried) {
  if (socket_ == nullptr || carried.link != link_) return;
  if (carried.kind == Carried::Kind::kEnd) ended_ = true;
  if (carried.kind == Carried::Kind::kData) incoming_ += carried.text;
  if (!delivering_) Deliver();
}

void Carrier::Deliver() {
  std::size_t sent = 0;
  while (sent < incoming_.size()) {
    const ssize_t size = ::send(socket_->native_handle(), incoming_.data() + sent, incoming_.size() - sent,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) return Close();  // the reader is gone
    if (size < 0) break;
    sent += static_cast<std::size_t>(size);
  }
  incoming_.erase(0, sent);
  if (incoming_.empty()) {
    if (ended_) ::shutdown(socket_->native_handle(), SHUT_WR);
    if (wire_.taken) wire_.taken();
    return;
  }
  delivering_ = true;
  socket_->async_wait(Socket::wait_write, [this, weak = std::weak_ptr(socket_)](const error_code& error) {
    if (error || weak.expired()) return;
    delivering_ = false;
    Deliver();
  });
}

bool CarriedLinks::Take(const std::string& line) {
  const auto carried = ParseCarried(line);
  if (!carried) {
    handlers_.on_line(line);
    return true;
  }
  if (!hosts_.contains(carried->host)) return true;
  if (carried->kind == Carried::Kind::kHere) {
    where_[carried->host] = IsAddress(carried->text) ? carried->text : "";
  } else if (carried->kind == Carried::Kind::kOpen) {
    Open(*carried);
  } else if (const auto found = carriers_.find(carried->host); found != carriers_.end()) {
    found->second->Take(*carried);
    return found->second->untaken_bytes() <= kMostUntaken;
  }
  return true;
}

void CarriedLinks::Open(const Carried& carried) {
  std::unique_ptr<Carrier>& carrier = carriers_[carried.host];
  if (carrier == nullptr) {
    Carrier::Wire wire = wire_;
    wire.taken = [this] {
      if (!behind() && wire_.taken) wire_.taken();
    };
    carrier = std::make_unique<Carrier>(loop_, carried.host, std::move(wire));
  }
  Result<UniqueFd> link = carrier->Open(carried.link);
  if (!link) return handlers_.on_line("cannot open the control link through it: " + link.error().text);
  handlers_.on_link(carried.host, *std::move(link), where_[carried.host]);
}

void CarriedLinks::OnSent() {
  for (auto& entry : carriers_) entry.second->OnSent();
}

bool CarriedLinks::behind() const {
  return std::ranges::any_of(carriers_,
                             [](const auto& entry) { return entry.second->untaken_bytes() > kMostUntaken; });
}

}  // namespace dtrun::protocol
