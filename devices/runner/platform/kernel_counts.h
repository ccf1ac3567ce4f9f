// Counts and times the calls of KleidiAI's kernels, each of them, while a program executes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Whether this platform supports it; elsewhere the flag for it is refused.
bool can_count_kernels();

// Counts from its construction until `stop`. One at a time.
class KernelCounts {
 public:
  // Throws RunError if the library of XNNPACK or its calls of kernels cannot be found.
  KernelCounts();

  // Stops counting. Returns the JSON: each kernel of KleidiAI that XNNPACK can call, with its calls and the nanoseconds
  // in them of all threads together, and what counting one call costs while `threads` threads do it.
  std::string stop(int executions, int threads);

 private:
  std::vector<std::string> names_;                            // in the order of their counters
  std::vector<std::pair<uintptr_t*, uintptr_t>> old_values_;  // of the slots
};
