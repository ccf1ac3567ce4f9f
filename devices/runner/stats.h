// What --stats_path says about one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"

struct Stats {
  std::optional<int64_t> load_ns;     // program and method; nothing if it was not loaded
  std::vector<int64_t> execution_ns;  // wall time of each execution that ended well
  int threads_requested = -1;
  std::optional<int> threads_used;
  std::optional<Sme2> sme2_requested;
  std::string exit_reason = "ok";  // or the sentence on stderr
};

// Returns the JSON, with the peak of resident memory until now and what XNNPACK was told of SME2.
std::string stats_json(const Stats& stats);

// Returns the JSON of --version.
std::string version_json();

// Nanoseconds of a clock that never steps.
int64_t now_ns();
