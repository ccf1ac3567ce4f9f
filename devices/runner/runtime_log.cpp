#include "runtime_log.h"

#include <executorch/runtime/platform/platform.h>

#include <cstdio>
#include <mutex>
#include <string_view>

namespace {

// The runtime logs each operator without a kernel as `Missing operator: [0] aten::add.out`, after the error of its lookup.
constexpr std::string_view kMissing = "Missing operator: ";
constexpr size_t kMaxChars = 2000;

std::mutex guard;
std::string first_error;
std::string missing_operators;

// Messages may quote bytes of a file that is not a program.
void append_printable(std::string& text, std::string_view message) {
  for (const char c : message) text += c >= ' ' && c <= '~' ? c : '?';
}

void add_missing_operator(std::string_view message) {
  const size_t begin = message.find("] ");
  if (begin == std::string_view::npos || missing_operators.size() > kMaxChars) return;
  missing_operators += missing_operators.empty() ? "" : ", ";
  append_printable(missing_operators, message.substr(begin + 2));
}

void keep(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t, const char* message, size_t) {
  // Print a fatal message now: the process aborts after it.
  if (level == kFatal) std::fprintf(stderr, "executor_runner: %s\n", message);
  const std::lock_guard<std::mutex> lock(guard);
  if (level != kError) return;
  if (std::string_view(message).substr(0, kMissing.size()) == kMissing) add_missing_operator(message);
  if (first_error.empty()) append_printable(first_error, message);
}

}  // namespace

void catch_runtime_log() {
  executorch::runtime::register_pal(executorch::runtime::PalImpl::create(keep, __FILE__));
}

void forget_runtime_errors() {
  const std::lock_guard<std::mutex> lock(guard);
  first_error.clear();
  missing_operators.clear();
}

std::string runtime_error_text(const std::string& code) {
  const std::lock_guard<std::mutex> lock(guard);
  if (!missing_operators.empty()) return "Missing operators: " + missing_operators + " (" + code + ")";
  return first_error.empty() ? code : first_error + " (" + code + ")";
}
