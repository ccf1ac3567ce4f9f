// The mappings of this process that take most memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// All mappings of a name: of a file without its folder, `program`, `heap`, `stack`, `anonymous` and others of the system.
struct Mapping {
  std::string name;
  int64_t resident_bytes = 0;
};

// Returns the name of a mapping from the path in Linux's /proc/PID/smaps; `program` is the file name of the model.
inline std::string mapping_name(const std::string& path, const std::string& program) {
  if (path.empty() || path.rfind("[anon", 0) == 0) return "anonymous";
  if (path.front() == '[') return path.substr(1, path.find(']') - 1);  // [heap], [stack], [vdso]
  const std::string file = path.substr(path.rfind('/') + 1);
  return file == program ? "program" : file;
}

// Returns the largest mappings from the text of /proc/PID/smaps, at most `count`, in descending order.
inline std::vector<Mapping> largest_mappings(std::istream& smaps, const std::string& program, size_t count) {
  std::map<std::string, int64_t> bytes;
  std::string name;
  for (std::string line; std::getline(smaps, line);) {
    int path_at = 0;
    long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "%*x-%*x %*s %*x %*s %*u%n", &path_at) >= 0 && path_at > 0) {
      const size_t first = line.find_first_not_of(' ', static_cast<size_t>(path_at));
      name = mapping_name(first == std::string::npos ? "" : line.substr(first), program);
    } else if (std::sscanf(line.c_str(), "Rss: %lld kB", &kilobytes) == 1) {
      bytes[name] += kilobytes * 1024;
    }
  }
  std::vector<Mapping> mappings;
  for (const auto& [key, size] : bytes) mappings.push_back({key, size});
  std::sort(mappings.begin(), mappings.end(),
            [](const Mapping& one, const Mapping& other) { return one.resident_bytes > other.resident_bytes; });
  mappings.resize(std::min(mappings.size(), count));
  return mappings;
}

// Returns those of this process; empty if the system does not list them. Takes longer the more memory is resident.
inline std::optional<std::vector<Mapping>> largest_mappings(const std::string& model_path, size_t count) {
#if defined(__APPLE__)
  return std::nullopt;  // the footprint is all that macOS tells at little cost
#else
  std::ifstream smaps("/proc/self/smaps");
  if (!smaps) return std::nullopt;
  return largest_mappings(smaps, model_path.substr(model_path.rfind('/') + 1), count);
#endif
}
