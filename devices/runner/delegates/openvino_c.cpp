// libopenvino_c.so: what ExecuTorch's OpenVINO backend opens. Sets the properties of a model on the real C library, reads
// back what is in force, and tells what OpenVINO does, for the message of a crash. The backend finds all other functions
// in the real library, which this one depends on.
#include <dlfcn.h>

#include <cstddef>
#include <string>

#include <executorch/runtime/platform/log.h>

#include "../crash.h"
#include "openvino_properties.h"

namespace {

constexpr int kOk = 0, kGeneralError = -1;  // of the C library's ov_status_e
constexpr char kDefault[] = "default";             // a value that is not set, but read back

template <typename Function>
Function real(const char* name) {
  static void* const library = dlopen(REAL_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

// Logs an error of OpenVINO, by the first line of its message; returns its status.
int fail(const std::string& what, int status) {
  const auto last_message = real<const char* (*)()>("ov_get_last_err_msg");
  const char* text = last_message ? last_message() : nullptr;
  std::string message = text ? text : "status " + std::to_string(status);
  // Before the cause it lists where in its sources it checked.
  const size_t cause = message.find_last_not_of(" \n");
  message.erase(cause == std::string::npos ? 0 : cause + 1);
  const size_t line = message.rfind('\n');
  ET_LOG(Error, "OpenVINO cannot %s: %s", what.c_str(), message.substr(line == std::string::npos ? 0 : line + 1).c_str());
  return status;
}

}  // namespace

extern "C" {

// Loads the plug-in of the processor.
int ov_core_get_available_devices(const void* core, void* devices) {
  const auto list = real<decltype(&ov_core_get_available_devices)>("ov_core_get_available_devices");
  if (!list) return kGeneralError;
  now_doing("loaded the model in OpenvinoBackend");
  const int status = list(core, devices);
  now_doing("loaded the model");
  return status == kOk ? kOk : fail("list its devices", status);
}

int ov_core_import_model(const void* core, const char* content, size_t size, const char* device, void** model) {
  const auto set = real<int (*)(const void*, const char*, ...)>("ov_core_set_property");
  const auto import = real<decltype(&ov_core_import_model)>("ov_core_import_model");
  const auto get = real<int (*)(const void*, const char*, char**)>("ov_compiled_model_get_property");
  const auto free_text = real<void (*)(const char*)>("ov_free");
  if (!set || !import || !get || !free_text) return fail(std::string("be used from ") + REAL_LIBRARY, kGeneralError);
  auto& [requested, in_force] = openvino_properties();
  for (const auto& [name, value] : requested) {
    if (value == kDefault) continue;
    if (const int status = set(core, device, name.c_str(), value.c_str()); status != kOk) {
      return fail("set " + name + "=" + value, status);
    }
  }
  now_doing("loaded the model in OpenvinoBackend");
  if (const int status = import(core, content, size, device, model); status != kOk) {
    return fail("import a part of the model", status);
  }
  now_doing("loaded the model");
  for (const auto& [name, _] : requested) {
    char* value = nullptr;
    if (get(*model, name.c_str(), &value) != kOk) continue;
    in_force[name] = value;
    free_text(value);
  }
  return kOk;
}

int ov_infer_request_infer(void* request) {
  static const auto infer = real<decltype(&ov_infer_request_infer)>("ov_infer_request_infer");
  if (!infer) return kGeneralError;
  now_doing("executed the model in OpenvinoBackend");
  const int status = infer(request);
  now_doing("executed the model");
  return status == kOk ? kOk : fail("execute a part of the model", status);
}

}  // extern "C"
