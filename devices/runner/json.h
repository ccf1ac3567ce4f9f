// Formats JSON values.
#pragma once

#include <string>

// Returns `text` as a JSON string with its quotes. Every byte that is not UTF-8, as a path may have, becomes U+FFFD.
std::string json_string(const std::string& text);

inline std::string json_bool(bool value) { return value ? "true" : "false"; }
