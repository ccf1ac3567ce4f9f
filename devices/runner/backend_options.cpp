#include "backend_options.h"

#include <executorch/runtime/backend/interface.h>

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <variant>

#include "errors.h"
#include "runtime_log.h"

using executorch::runtime::BackendOption;
using executorch::runtime::Error;
using executorch::runtime::kMaxOptionKeyLength;
using executorch::runtime::kMaxOptionValueLength;
using executorch::runtime::OptionValue;
using executorch::runtime::Span;
using Text = std::array<char, kMaxOptionValueLength>;

namespace {

// What no backend returns: a key that still has it was not read.
constexpr int kUnread = std::numeric_limits<int>::min();

OptionValue to_value(const std::string& key, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  Text value{};
  if (text.size() >= value.size()) {
    throw UsageError("--backend_options: the value of " + key + " has more than " + std::to_string(value.size() - 1) +
                     " characters");
  }
  std::memcpy(value.data(), text.data(), text.size());
  return value;
}

BackendOption to_option(const std::string& key, OptionValue value) {
  BackendOption option;
  if (key.size() >= kMaxOptionKeyLength) {
    throw UsageError("--backend_options: the key " + key + " has more than " + std::to_string(kMaxOptionKeyLength - 1) +
                     " characters");
  }
  std::memcpy(option.key, key.data(), key.size());
  option.value = std::move(value);
  return option;
}

void add_value(JsonObject& object, const char* key, const OptionValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) object.add(key, *truth);
  else if (const Text* text = std::get_if<Text>(&value)) object.add(key, std::string(text->data()));
  else if (std::get<int>(value) != kUnread) object.add(key, std::get<int>(value));
  else object.add(key, std::optional<int>());
}

}  // namespace

BackendOptions::BackendOptions(const BackendOptionTexts& texts) {
  for (const auto& [backend, values] : texts) {
    for (const auto& [key, text] : values) options_[backend].push_back(to_option(key, to_value(key, text)));
  }
}

void BackendOptions::set() {
  for (auto& [backend, options] : options_) {
    if (executorch::runtime::get_backend_class(backend.c_str()) == nullptr) {
      throw UsageError("--backend_options: this runner does not have the backend " + backend);
    }
    for (BackendOption& option : options) {
      forget_runtime_errors();
      const Error error = executorch::runtime::set_option(backend.c_str(), Span<BackendOption>(&option, 1));
      if (error == Error::Ok) continue;
      const std::string cause = runtime_error_text(executorch::runtime::to_string(error));
      throw UsageError("--backend_options: " + backend + " refuses its value of " + option.key + ": " + cause);
    }
  }
}

executorch::runtime::LoadBackendOptionsMap BackendOptions::for_load() {
  executorch::runtime::LoadBackendOptionsMap map;
  for (auto& [backend, options] : options_) {
    if (map.set_options(backend.c_str(), Span<BackendOption>(options.data(), options.size())) == Error::Ok) continue;
    throw UsageError("--backend_options: too many backends, or the name " + backend + " is too long");
  }
  return map;
}

JsonObject BackendOptions::read_back() const {
  JsonObject backends;
  for (const auto& [backend, options] : options_) {
    JsonObject values;
    for (const BackendOption& option : options) {
      BackendOption read = to_option(option.key, kUnread);
      Span<BackendOption> span(&read, 1);
      if (executorch::runtime::get_option(backend.c_str(), span) != Error::Ok) read.value = kUnread;
      add_value(values, option.key, read.value);
    }
    backends.add(backend, values);
  }
  return backends;
}
