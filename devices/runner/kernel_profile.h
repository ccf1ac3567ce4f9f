// The executed kernels: program counter samples of all threads, resolved to names after the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sample_timers.h"

// Samples from construction to `stop`; only one instance at a time. Its buffer is allocated before and never freed.
class KernelProfile {
 public:
  KernelProfile();

  // Stops sampling and returns the JSON. A sample in a function without a symbol is counted as unresolved under its
  // library; its name is never guessed.
  std::string stop();

 private:
  int64_t start_ns_ = 0;  // of the processor time
  std::optional<SampleTimers> timers_;
};
