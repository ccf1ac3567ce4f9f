// How fast memory can be read: the limit of a model whose weights are larger than the caches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// Reads 256 MB `rounds` times (at least once) with as many threads, and returns the bytes per second of the median; empty
// if the system has no room for it, or not so many threads.
std::optional<int64_t> memory_read_bytes_per_s(int threads, int rounds);

struct ReadSpeed {
  int64_t bytes;        // read again and again, divided among the threads
  int64_t bytes_per_s;  // of the fastest round: a roof is what is possible
};

// Reads memory of sizes from 16 KB, which a first cache holds, to 256 MB, the smallest first, in as many rounds of 256 MB
// (at least one); empty if the system has no room for it, or not so many threads.
std::vector<ReadSpeed> read_speeds(int threads, int rounds);
