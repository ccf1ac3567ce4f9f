// Writes JSON values.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

// Returns `text` as a JSON string with its quotes. Every byte that is not UTF-8, as a path may have, becomes U+FFFD.
std::string json(const std::string& text);
inline std::string json(const char* text) { return json(std::string(text)); }

template <typename Value, typename = std::enable_if_t<std::is_arithmetic_v<Value>>>
std::string json(Value value) {
  if constexpr (std::is_same_v<Value, bool>) return value ? "true" : "false";
  else return std::to_string(value);
}

template <typename Value>
std::string json(const std::optional<Value>& value) { return value ? json(*value) : "null"; }

template <typename Value>
std::string json(const std::vector<Value>& values) {
  std::string items;
  for (const Value& value : values) items += (items.empty() ? "" : ", ") + json(value);
  return "[" + items + "]";
}

// An object with its members in the order in which they are added.
class JsonObject {
 public:
  template <typename Value>
  JsonObject& add(const std::string& name, const Value& value) {
    members_ += (members_.empty() ? "" : ", ") + json(name) + ": " + json(value);
    return *this;
  }
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

inline std::string json(const JsonObject& object) { return object.text(); }
