#include "core/pmi/open_mpi_message.h"

#include <cstdint>

namespace dtrun::pmi {
namespace {

// Each value is preceded by its count, and a text by its size including the terminating zero.
class Packed {
 public:
  explicit Packed(std::string_view bytes) : rest_(bytes) {}

  std::string_view Text() {
    if (Number() != 1) rest_ = {};
    return Take(Number());
  }
  void Flag() {
    if (Number() != 1) rest_ = {};
    Take(1);
  }

 private:
  std::uint32_t Number() {
    std::uint32_t number = 0;
    for (const char byte : Take(4)) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
  }
  // Empty from the first call that asks for more than is left.
  std::string_view Take(std::size_t size) {
    const std::string_view taken = size <= rest_.size() ? rest_.substr(0, size) : std::string_view();
    rest_.remove_prefix(size <= rest_.size() ? size : rest_.size());
    return taken;
  }

  std::string_view rest_;
};

}  // namespace

std::string OpenMpiMessage(std::string_view bytes) {
  Packed packed(bytes);
  packed.Text();  // file
  packed.Text();  // topic
  packed.Flag();
  std::string_view text = packed.Text();
  while (text.ends_with('\0')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace dtrun::pmi
