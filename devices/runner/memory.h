// How fast memory can be read: the limit of a model whose weights are larger than the caches.
#pragma once

#include <cstdint>
#include <optional>

// Reads 256 MB `rounds` times (at least once) with as many threads, and returns the bytes per second of the median; empty
// if the system has no room for it, or not so many threads.
std::optional<int64_t> memory_read_bytes_per_s(int threads, int rounds);
