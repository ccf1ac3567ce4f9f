#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "errors.h"

namespace {

UsageError unreadable(const std::string& path, const std::string& what, int cause) {
  return UsageError("cannot read " + what + " " + path + ": " + std::strerror(cause));
}

// Returns the open file and its size.
std::pair<int, size_t> open_to_read(const std::string& path, const std::string& what) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw unreadable(path, what, errno);
  struct stat about {};
  fstat(descriptor, &about);
  if (!S_ISDIR(about.st_mode)) return {descriptor, static_cast<size_t>(about.st_size)};
  close(descriptor);
  throw unreadable(path, what, EISDIR);
}

}  // namespace

void check_readable(const std::string& path, const std::string& what) { close(open_to_read(path, what).first); }

std::vector<char> read_file(const std::string& path, const std::string& what) {
  const auto [descriptor, size] = open_to_read(path, what);
  std::vector<char> bytes(size);
  size_t done = 0;
  int cause = 0;
  while (cause == 0 && done < bytes.size()) {
    const ssize_t got = read(descriptor, bytes.data() + done, bytes.size() - done);
    if (got > 0) done += static_cast<size_t>(got);
    else if (got == 0) bytes.resize(done);
    else if (errno != EINTR) cause = errno;
  }
  close(descriptor);
  if (cause != 0) throw unreadable(path, what, cause);
  return bytes;
}

void write_complete(const std::string& path, const void* data, size_t size) {
  // Write directly to a device or a pipe: a rename would replace it with a file.
  struct stat about {};
  const bool is_file = stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode);
  const std::string aside = is_file ? path + ".part-" + std::to_string(getpid()) : path;
  const int descriptor = open(aside.c_str(), O_WRONLY | O_CLOEXEC | (is_file ? O_CREAT | O_TRUNC : 0), 0644);
  int cause = descriptor < 0 ? errno : 0;
  for (size_t done = 0; cause == 0 && done < size;) {
    const ssize_t written = write(descriptor, static_cast<const char*>(data) + done, size - done);
    if (written >= 0) done += static_cast<size_t>(written);
    else if (errno != EINTR) cause = errno;
  }
  // A full disk may be reported only when the bytes are flushed.
  if (cause == 0 && is_file && fsync(descriptor) != 0) cause = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && cause == 0) cause = errno;
  if (cause == 0 && is_file && std::rename(aside.c_str(), path.c_str()) != 0) cause = errno;
  if (cause == 0) return;
  if (is_file) unlink(aside.c_str());
  throw RunError("cannot write " + path + ": " + std::strerror(cause));
}

void write_complete(const std::string& path, const std::string& text) {
  write_complete(path, text.data(), text.size());
}
