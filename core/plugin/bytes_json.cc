#include "core/plugin/bytes_json.h"

namespace dtrun::plugin::wire {

std::string ToCharacters(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

std::string ToBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
    } else {
      bytes += static_cast<char>((byte << 6) | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return bytes;
}

Json FromTexts(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) out.push_back(ToCharacters(text));
  return out;
}

std::vector<std::string> ToTexts(const Json& json) {
  std::vector<std::string> out;
  for (const Json& text : json) out.push_back(ToBytes(text.get_ref<const std::string&>()));
  return out;
}

Json FromMap(const std::map<std::string, std::string>& map) {
  Json out = Json::array();
  for (const auto& [name, value] : map) out.push_back({ToCharacters(name), ToCharacters(value)});
  return out;
}

std::map<std::string, std::string> ToMap(const Json& json) {
  std::map<std::string, std::string> out;
  for (const Json& pair : json)
    out[ToBytes(pair.at(0).get_ref<const std::string&>())] =
        ToBytes(pair.at(1).get_ref<const std::string&>());
  return out;
}

std::string TextAt(const Json& json, const char* key) {
  return ToBytes(json.at(key).get_ref<const std::string&>());
}

}  // namespace dtrun::plugin::wire
