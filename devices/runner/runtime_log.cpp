#include "runtime_log.h"

#include <executorch/runtime/platform/platform.h>

#include <cstdio>
#include <mutex>

namespace {

std::mutex guard;
std::string first_error;

void keep(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t, const char* message, size_t) {
  // Print a fatal message now: the process aborts after it.
  if (level == kFatal) std::fprintf(stderr, "executor_runner: %s\n", message);
  const std::lock_guard<std::mutex> lock(guard);
  if (level != kError || !first_error.empty()) return;
  // Messages may quote bytes of a file that is not a program.
  for (const char* c = message; *c != 0; ++c) first_error += *c >= ' ' && *c <= '~' ? *c : '?';
}

}  // namespace

void catch_runtime_log() {
  executorch::runtime::register_pal(executorch::runtime::PalImpl::create(keep, __FILE__));
}

void forget_runtime_errors() {
  const std::lock_guard<std::mutex> lock(guard);
  first_error.clear();
}

std::string first_runtime_error(const std::string& otherwise) {
  const std::lock_guard<std::mutex> lock(guard);
  return first_error.empty() ? otherwise : first_error;
}
