#include "memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "stats.h"

namespace {

constexpr size_t kBytes = size_t{256} << 20;  // several times the caches of phones and of most servers
constexpr size_t kValues = kBytes / sizeof(uint64_t);

// Calls work(first, last) in each thread for its part of the values; returns whether the system started all threads.
template <typename Work>
bool on_threads(size_t threads, const Work& work) {
  std::vector<std::thread> started;
  try {
    for (size_t i = 0; i < threads; ++i) {
      started.emplace_back(work, kValues * i / threads, kValues * (i + 1) / threads);
    }
  } catch (const std::system_error&) {
  }
  for (std::thread& thread : started) thread.join();
  return started.size() == threads;
}

}  // namespace

std::optional<int64_t> memory_read_bytes_per_s(int threads, int rounds) {
  const std::unique_ptr<uint64_t[]> values(new (std::nothrow) uint64_t[kValues]);
  if (values == nullptr) return std::nullopt;
  const auto count = static_cast<size_t>(threads);
  std::atomic<uint64_t> used{0};  // otherwise the compiler could drop the reads
  const auto write = [&values](size_t first, size_t last) { std::fill(&values[first], &values[last], first + 1); };
  const auto read = [&values, &used](size_t first, size_t last) {
    uint64_t sum = 0;
    for (size_t i = first; i < last; ++i) sum += values[i];
    used += sum;
  };
  // Until a page is written, it takes no memory, and it lies near the core that writes it.
  if (!on_threads(count, write)) return std::nullopt;
  std::vector<int64_t> times_ns;
  for (int round = 0; round < rounds; ++round) {
    const int64_t start = now_ns();
    if (!on_threads(count, read)) return std::nullopt;
    times_ns.push_back(now_ns() - start);
  }
  std::sort(times_ns.begin(), times_ns.end());
  return static_cast<int64_t>(static_cast<double>(kBytes) * 1e9 / static_cast<double>(times_ns[times_ns.size() / 2]));
}
