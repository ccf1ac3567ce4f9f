// Reads and writes complete files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Throws UsageError naming `what` and the path where the file cannot be read.
void check_readable(const std::string& path, const std::string& what);

// Returns the file's bytes; throws UsageError naming `what` and the path where it cannot be read.
std::vector<char> read_file(const std::string& path, const std::string& what);

// Writes a temporary file and renames it to `path`, which is never a partial file; a link, a device or a pipe stays what
// it is and receives the bytes. Throws RunError.
void write_complete(const std::string& path, const void* data, size_t size);
void write_complete(const std::string& path, const std::string& text);

// Returns the CRC-32 of some bytes, as zlib and gzip compute it.
uint32_t crc32(const void* data, size_t size);
