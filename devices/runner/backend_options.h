// Options of backends, such as XNNPACK's weights cache.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/backend/options.h>

#include <map>
#include <string>
#include <vector>

#include "json.h"

// By backend, each key with its value as on the command line: true, false, an integer, or a text.
using BackendOptionTexts = std::map<std::string, std::map<std::string, std::string>>;

class BackendOptions {
 public:
  // Throws UsageError for a key or a text that is too long.
  explicit BackendOptions(const BackendOptionTexts& texts);

  // Sets the options of each backend; throws UsageError for a backend that the runner lacks, or that refuses a value. A
  // backend accepts a key that it does not have.
  void set();

  // Returns the same options for loading: a backend resolves some only there. Valid as long as this object.
  executorch::runtime::LoadBackendOptionsMap for_load();

  // Returns what each backend returns for each key; null for a key that it does not have, or does not return.
  JsonObject read_back() const;

 private:
  std::map<std::string, std::vector<executorch::runtime::BackendOption>> options_;
};
