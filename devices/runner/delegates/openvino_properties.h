// Properties of OpenVINO, by its own names and values: ExecuTorch's backend sets none, and OpenVINO then computes a
// model of fp32 in bf16 where the processor can, on all cores.
#pragma once

#include <map>
#include <string>

struct OpenvinoProperties {
  std::map<std::string, std::string> requested;  // by --backend_options=OpenvinoRuntime:NAME=VALUE,...; `default`: as it is
  std::map<std::string, std::string> in_force;   // as the compiled model returns them
};

OpenvinoProperties& openvino_properties();
