#include "core/metrics/http.h"

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/beast/http/parser.hpp>
// clang-format on

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>

#include "core/base/same_secret.h"

namespace dtrun::metrics {
namespace {

namespace http = boost::beast::http;

constexpr unsigned kBadRequest = 400, kUnauthorized = 401, kNotFound = 404, kMethodNotAllowed = 405,
                   kTooLarge = 431;
constexpr std::string_view kBearer = "Bearer ";

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

boost::beast::string_view ToBeast(std::string_view text) { return {text.data(), text.size()}; }

bool MayRead(std::string_view authorization, std::string_view token) {
  if (token.empty()) return true;
  // The scheme in any case: RFC 9110, 11.1.
  return boost::beast::iequals(ToBeast(authorization.substr(0, kBearer.size())), ToBeast(kBearer)) &&
         SameSecret(authorization.substr(kBearer.size()), token);
}

}  // namespace

Request ReadRequest(std::string_view bytes, std::string_view token) {
  if (bytes.empty()) return {};
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMostRequestBytes);
  parser.body_limit(0);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::header_limit || bytes.size() > kMostRequestBytes) return {kTooLarge};
  if (error == http::error::need_more || (!error && !parser.is_header_done())) return {};
  if (error) return {kBadRequest};
  const auto& request = parser.get();
  if (!MayRead(View(request[http::field::authorization]), token)) return {kUnauthorized};
  const bool head = request.method() == http::verb::head;
  if (!head && request.method() != http::verb::get) return {kMethodNotAllowed};
  const std::string_view target = View(request.target());
  return {target.substr(0, target.find('?')) == "/metrics" ? 200U : kNotFound, !head};
}

std::string_view AnswerText(unsigned status) {
  switch (status) {
    case kUnauthorized: return "send the token of metrics.token_file: Authorization: Bearer TOKEN\n";
    case kNotFound: return "the numbers of this job are at /metrics\n";
    case kMethodNotAllowed: return "only GET and HEAD are answered here\n";
    case kTooLarge: return "the request has more than 8192 bytes\n";
    default: return "this is no HTTP request\n";
  }
}

std::string AnswerHead(unsigned status, std::size_t body_bytes) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n{}Connection: "
      "close\r\n\r\n",
      status, View(http::obsolete_reason(static_cast<http::status>(status))),
      status == 200 ? "application/openmetrics-text; version=1.0.0" : "text/plain", body_bytes,
      status == kUnauthorized ? "WWW-Authenticate: Bearer\r\n" : "");
}

}  // namespace dtrun::metrics
