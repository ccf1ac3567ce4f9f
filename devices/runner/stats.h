// The content of --stats_path: measurements of one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "first_start.h"
#include "flags.h"
#include "json.h"
#include "memory.h"
#include "platform/mappings.h"
#include "platform/peak_memory.h"

struct Stats {
  std::optional<int64_t> load_ns;     // program and method; empty if it was not loaded
  std::optional<int64_t> setup_ns;    // execution of the setup method; empty without one
  std::vector<int64_t> execution_ns;  // wall time of each successful execution
  std::vector<int64_t> untraced_execution_ns;
  std::optional<uint32_t> etdump_crc32;  // of the file that was written; empty without one
  std::optional<int64_t> model_peak_memory_bytes;  // after the first execution; empty if none succeeded
  std::optional<ResidentMemory> start_memory;      // before the program is loaded
  std::optional<ResidentMemory> load_memory;       // when the method is loaded
  std::optional<ResidentMemory> model_memory;      // after the first execution
  std::optional<ResidentMemory> end_memory;        // after the last one
  std::optional<std::vector<Mapping>> mappings;    // the largest after the first execution; empty if not requested
  std::optional<int64_t> peak_memory_bytes;        // after the last one, with all that was recorded
  std::optional<int64_t> memory_read_bytes_per_s;  // of as many threads; empty if it was not requested
  std::vector<ReadSpeed> read_speeds;              // of several sizes; empty if they were not requested
  std::optional<bool> outputs_repeat;              // the last execution returned what the first did
  std::optional<int> threads_used;
  JsonObject backend_options;             // as the backends return them
  std::optional<FirstStart> first_start;  // of two; empty without --cache_file
  std::optional<int64_t> cache_bytes;     // what the first start wrote; empty if it wrote no file
  std::string exit_reason = "ok";  // or the error message on stderr
};

// Returns the JSON, with what the flags request and the answer that XNNPACK received about SME and SME2.
std::string stats_json(const Stats& stats, const Flags& flags);

// Returns the JSON of --version.
std::string version_json();

// Returns nanoseconds of a monotonic clock.
int64_t now_ns();
