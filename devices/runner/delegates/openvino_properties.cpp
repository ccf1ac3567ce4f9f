// Takes the properties as options of a backend, OpenvinoRuntime, that executes nothing: so they are flags of the runner,
// and what is in force is in stats.json, as for the options of other backends.
#include "openvino_properties.h"

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/backend/options.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <variant>

using namespace executorch::runtime;

namespace {

using Text = std::array<char, kMaxOptionValueLength>;

std::string to_property(const OptionValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "YES" : "NO";
  if (const int* number = std::get_if<int>(&value)) return std::to_string(*number);
  return std::get<Text>(value).data();
}

OptionValue to_value(const std::string& property) {
  if (property == "YES" || property == "NO") return property == "YES";
  int number = 0;
  const char* end = property.data() + property.size();
  if (const auto [stop, error] = std::from_chars(property.data(), end, number); error == std::errc() && stop == end) {
    return number;
  }
  Text text{};
  std::strncpy(text.data(), property.c_str(), text.size() - 1);
  return text;
}

class OpenvinoRuntime final : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Error set_option(BackendOptionContext&, const Span<BackendOption>& options) override {
    for (const BackendOption& option : options) {
      openvino_properties().requested[option.key] = to_property(option.value);
    }
    return Error::Ok;
  }

  Error get_option(BackendOptionContext&, Span<BackendOption>& options) override {
    for (BackendOption& option : options) {
      const auto property = openvino_properties().in_force.find(option.key);
      if (property != openvino_properties().in_force.end()) option.value = to_value(property->second);
    }
    return Error::Ok;
  }

  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer*, ArrayRef<CompileSpec>) const override {
    return Error::NotSupported;
  }
  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*>) const override { return Error::NotSupported; }
};

OpenvinoRuntime runtime;
// It would replace the library beside the runner, which sets the properties, by another one.
[[maybe_unused]] const int unset = unsetenv("OPENVINO_LIB_PATH");
[[maybe_unused]] const Error registered = register_backend({"OpenvinoRuntime", &runtime});

}  // namespace

OpenvinoProperties& openvino_properties() {
  static OpenvinoProperties properties;
  return properties;
}
