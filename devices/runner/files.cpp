#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "errors.h"

namespace {

UsageError unreadable(const std::string& path, const std::string& what, int cause) {
  return UsageError("cannot read " + what + " " + path + ": " + std::strerror(cause));
}

// Returns the open file and its size. Without O_NONBLOCK, opening a pipe would wait for somebody who writes to it.
std::pair<int, size_t> open_to_read(const std::string& path, const std::string& what) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw unreadable(path, what, errno);
  struct stat about {};
  fstat(descriptor, &about);
  if (S_ISREG(about.st_mode)) return {descriptor, static_cast<size_t>(about.st_size)};
  close(descriptor);
  if (S_ISDIR(about.st_mode)) throw unreadable(path, what, EISDIR);
  throw UsageError("cannot read " + what + " " + path + ": it is not a regular file; copy its content to one");
}

// Where the bytes of an output go.
struct Destination {
  int descriptor = -1;
  std::string file;   // the regular file that will have them; empty: they go directly to a device, a pipe or a terminal
  std::string aside;  // where they are written until they are complete
};

bool is_same_file(const struct stat& about, int descriptor) {
  struct stat other {};
  return fstat(descriptor, &other) == 0 && other.st_dev == about.st_dev && other.st_ino == about.st_ino;
}

// A link stays a link: what it points to is written. The program's own output, such as /dev/stdout, is continued and
// never replaced, even where it is a regular file.
Destination open_to_write(const std::string& path) {
  Destination to;
  struct stat about {};
  const bool exists = stat(path.c_str(), &about) == 0;
  for (const int own : {STDOUT_FILENO, STDERR_FILENO}) {
    if (exists && is_same_file(about, own)) {
      std::fflush(nullptr);
      to.descriptor = fcntl(own, F_DUPFD_CLOEXEC, 0);
      return to;
    }
  }
  if (exists && !S_ISREG(about.st_mode)) {
    to.descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return to;
  }
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), std::free);
  if (!real && lstat(path.c_str(), &about) == 0) {
    throw RunError("cannot write " + path + ": it is a link to nothing; remove it");
  }
  to.file = real ? real.get() : path;
  to.aside = to.file + ".part-" + std::to_string(getpid());
  to.descriptor = open(to.aside.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, 0644);
  return to;
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
  const Destination to = open_to_write(path);
  const bool is_file = !to.aside.empty();
  const int descriptor = to.descriptor;
  int cause = descriptor < 0 ? errno : 0;
  for (size_t done = 0; cause == 0 && done < size;) {
    const ssize_t written = write(descriptor, static_cast<const char*>(data) + done, size - done);
    if (written >= 0) done += static_cast<size_t>(written);
    else if (errno != EINTR) cause = errno;
  }
  // A full disk may be reported only when the bytes are flushed.
  if (cause == 0 && is_file && fsync(descriptor) != 0) cause = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && cause == 0) cause = errno;
  if (cause == 0 && is_file && std::rename(to.aside.c_str(), to.file.c_str()) != 0) cause = errno;
  if (cause == 0) return;
  if (is_file) unlink(to.aside.c_str());
  throw RunError("cannot write " + path + ": " + std::strerror(cause));
}

void write_complete(const std::string& path, const std::string& text) {
  write_complete(path, text.data(), text.size());
}

uint32_t crc32(const void* data, size_t size) {
  constexpr uint32_t kPolynomial = 0xEDB88320;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
    table[i] = value;
  }
  uint32_t crc = ~uint32_t{0};
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) crc = table[(crc ^ bytes[i]) & 0xFF] ^ (crc >> 8);
  return ~crc;
}
