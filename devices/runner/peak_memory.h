// The peak memory of a process, read from Linux's /proc/PID/status.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <istream>
#include <string>

// Returns bytes: the most that was ever resident, or what is resident and swapped out now if that is more. Pages that
// Android moves to compressed swap leave the resident peak too small. 0 if the lines are missing.
inline int64_t peak_memory_bytes(std::istream& status) {
  long long peak = 0, resident = 0, swapped = 0, kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kilobytes) == 1) peak = kilobytes;
    if (std::sscanf(line.c_str(), "VmRSS: %lld kB", &kilobytes) == 1) resident = kilobytes;
    if (std::sscanf(line.c_str(), "VmSwap: %lld kB", &kilobytes) == 1) swapped = kilobytes;
  }
  return std::max(peak, resident + swapped) * 1024;
}
