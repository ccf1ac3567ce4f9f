// Whole files, in and out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Throws UsageError naming `what` and the path where the file cannot be read.
void check_readable(const std::string& path, const std::string& what);

// Returns the file's bytes; throws UsageError naming `what` and the path where it cannot be read.
std::vector<char> read_file(const std::string& path, const std::string& what);

// Writes beside `path` and renames, so that a half-written file never has the name; throws RunError.
void write_whole(const std::string& path, const void* data, size_t size);
void write_whole(const std::string& path, const std::string& text);
