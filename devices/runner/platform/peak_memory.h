// The memory of this process: the peak, and of what it consists.
#pragma once

#include <sys/resource.h>
#if defined(__APPLE__)
#include <mach/mach.h>
#endif

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

// Resident memory in bytes. Pages of files, such as mapped programs, can be dropped and read again when memory is scarce.
struct ResidentMemory {
  int64_t anonymous = 0;  // on macOS the footprint, which includes what is compressed
  int64_t of_files = 0;   // mapped files, with those of the program and its libraries
  int64_t swapped = 0;    // anonymous memory that is in swap, not resident; 0 on macOS
};

// Returns all three from the text of Linux's /proc/PID/status; empty if the lines are missing.
inline std::optional<ResidentMemory> resident_memory(std::istream& status) {
  std::optional<long long> anonymous, of_files;
  long long shared = 0, swapped = 0, kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "RssAnon: %lld kB", &kilobytes) == 1) anonymous = kilobytes;
    if (std::sscanf(line.c_str(), "RssFile: %lld kB", &kilobytes) == 1) of_files = kilobytes;
    if (std::sscanf(line.c_str(), "RssShmem: %lld kB", &kilobytes) == 1) shared = kilobytes;  // no file on a disk
    if (std::sscanf(line.c_str(), "VmSwap: %lld kB", &kilobytes) == 1) swapped = kilobytes;
  }
  if (!anonymous || !of_files) return std::nullopt;
  return ResidentMemory{(*anonymous + shared) * 1024, *of_files * 1024, swapped * 1024};
}

// Returns all three of this process now; empty if the system does not tell.
inline std::optional<ResidentMemory> resident_memory() {
#if defined(__APPLE__)
  task_vm_info_data_t info{};
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  const auto into = reinterpret_cast<task_info_t>(&info);
  if (task_info(mach_task_self(), TASK_VM_INFO, into, &count) != KERN_SUCCESS) return std::nullopt;
  return ResidentMemory{static_cast<int64_t>(info.phys_footprint), static_cast<int64_t>(info.external)};
#else
  std::ifstream status("/proc/self/status");
  return resident_memory(status);
#endif
}
