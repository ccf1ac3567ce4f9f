#include "json.h"

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

// Returns the bytes of the UTF-8 character that `text` begins with, 0 if it does not begin with one.
size_t utf8_length(std::string_view text) {
  constexpr uint32_t kMinCode[] = {0, 0, 0x80, 0x800, 0x10000};  // a longer form of a smaller number is not allowed
  const unsigned char lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 0x6 ? 2 : lead >> 4 == 0xe ? 3 : lead >> 3 == 0x1e ? 4 : 0;
  if (length <= 1 || length > text.size()) return length == 1;
  uint32_t code = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    const unsigned char next = static_cast<unsigned char>(text[i]);
    if (next >> 6 != 0x2) return 0;
    code = code << 6 | (next & 0x3f);
  }
  const bool is_half_of_a_pair = code >= 0xd800 && code <= 0xdfff;
  return code >= kMinCode[length] && code <= 0x10ffff && !is_half_of_a_pair ? length : 0;
}

}  // namespace

std::string json(const std::string& text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[at]);
    const size_t length = utf8_length(std::string_view(text).substr(at));
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c);
    } else if (c < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      quoted += escape;
    } else {
      quoted.append(text, at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return quoted + '"';
}
