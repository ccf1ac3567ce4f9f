// The first of two starts, which fills a cache on disk that the second one reads.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

struct FirstStart {
  int64_t load_ns = 0;                       // program and method
  std::optional<int64_t> peak_memory_bytes;  // empty if the system does not tell
};

// Calls `start` in a child process, so that its memory is not this one's; this process must not have started threads.
// Throws the UsageError or RunError of the child; if it crashes, this process ends by the same signal.
FirstStart start_in_child(const std::function<FirstStart()>& start);

// The file of a cache. Removed at the end, also of a crash.
class CacheFile {
 public:
  // Throws UsageError if the file exists: the first start would not be one.
  explicit CacheFile(std::string path);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  // Returns its size after the first start; empty if no backend wrote it.
  std::optional<int64_t> bytes();

  // Throws RunError if it was written since: the second start was another first one.
  void check_was_read() const;

 private:
  std::string path_;
  struct stat written_ {};
};
