// The peak memory of this process.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <istream>
#include <optional>
#include <string>

// Returns bytes from the text of Linux's /proc/PID/status: the most that was ever resident, or what is resident and
// swapped out now if that is more. Pages that Android moves to compressed swap leave the resident peak too small. 0 if
// the lines are missing.
inline int64_t peak_memory_bytes(std::istream& status) {
  long long peak = 0, resident = 0, swapped = 0, kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kilobytes) == 1) peak = kilobytes;
    if (std::sscanf(line.c_str(), "VmRSS: %lld kB", &kilobytes) == 1) resident = kilobytes;
    if (std::sscanf(line.c_str(), "VmSwap: %lld kB", &kilobytes) == 1) swapped = kilobytes;
  }
  return std::max(peak, resident + swapped) * 1024;
}

// Returns the largest memory of this process so far that was resident, in bytes; empty if the system does not tell.
inline std::optional<int64_t> peak_memory_bytes() {
#if defined(__APPLE__)
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
#else
  // getrusage is not used: its peak is inherited from the parent process.
  std::ifstream status("/proc/self/status");
  const int64_t bytes = peak_memory_bytes(status);
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
#endif
}
