#include "first_start.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "crash.h"
#include "errors.h"

namespace {

enum class End : char { ok = 'o', usage_error = 'u', run_error = 'r' };

void write_all(int descriptor, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(descriptor, at, size);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) at += written, size -= static_cast<size_t>(written);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = read(descriptor, part, sizeof part)) != 0;) {
    if (got > 0) text.append(part, static_cast<size_t>(got));
    else if (errno != EINTR) break;
  }
  return text;
}

// In the child: writes how the start ended, and its figures or its error.
void report_start(int descriptor, const std::function<FirstStart()>& start) {
  const auto report = [descriptor](End end, const void* data, size_t size) {
    write_all(descriptor, &end, 1);
    write_all(descriptor, data, size);
  };
  try {
    const FirstStart result = start();
    report(End::ok, &result, sizeof result);
  } catch (const UsageError& error) {
    report(End::usage_error, error.what(), std::strlen(error.what()));
  } catch (const std::exception& error) {
    report(End::run_error, error.what(), std::strlen(error.what()));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

FirstStart start_in_child(const std::function<FirstStart()>& start) {
  int ends[2];
  if (pipe(ends) != 0) throw RunError(std::string("cannot create a pipe: ") + std::strerror(errno));
  std::fflush(nullptr);  // or the child would print it again
  const pid_t child = fork();
  if (child < 0) throw RunError(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    report_start(ends[1], start);
    _exit(0);
  }
  close(ends[1]);
  const std::string report = read_all(ends[0]);
  close(ends[0]);
  const int status = wait_for(child);
  if (WIFSIGNALED(status)) end_by_signal(WTERMSIG(status));  // the child has printed what it was doing
  FirstStart result;
  const std::string content = report.empty() ? "" : report.substr(1);
  const End end = report.empty() ? End::run_error : static_cast<End>(report[0]);
  if (end == End::usage_error) throw UsageError(content);
  if (end != End::ok || content.size() != sizeof result) throw RunError("the first start failed: " + content);
  std::memcpy(&result, content.data(), sizeof result);
  return result;
}

CacheFile::CacheFile(std::string path) : path_(std::move(path)) {
  if (access(path_.c_str(), F_OK) == 0) {
    throw UsageError("--cache_file=" + path_ + " exists, but the first start must be without a cache; remove it");
  }
  remove_in_crash(path_.c_str());
}

CacheFile::~CacheFile() {
  remove_in_crash(nullptr);
  unlink(path_.c_str());
}

std::optional<int64_t> CacheFile::bytes() {
  return stat(path_.c_str(), &written_) == 0 ? std::optional<int64_t>(written_.st_size) : std::nullopt;
}

void CacheFile::check_was_read() const {
#if !defined(__APPLE__)  // which may record the time of a write to a mapped file late
  struct stat about {};
  if (written_.st_size == 0 || stat(path_.c_str(), &about) != 0) return;  // nothing to read
  const auto &now = about.st_mtim, &then = written_.st_mtim;
  if (now.tv_sec == then.tv_sec && now.tv_nsec == then.tv_nsec) return;
  throw RunError("--cache_file=" + path_ + ": the second start wrote the cache again instead of reading it, since the "
                 "first one could not complete it");
#endif
}
