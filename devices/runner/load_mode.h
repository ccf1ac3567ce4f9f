// How the file of a program gets into memory.
#pragma once

#include <executorch/extension/module/module.h>

#include <map>
#include <string>

// By the names of --load_mode.
inline const std::map<std::string, executorch::extension::Module::LoadMode>& load_modes() {
  using LoadMode = executorch::extension::Module::LoadMode;
  static const std::map<std::string, LoadMode> modes = {{"file", LoadMode::File},
                                                        {"mmap", LoadMode::Mmap},
                                                        {"mmap_mlock", LoadMode::MmapUseMlock},
                                                        {"mmap_try_mlock", LoadMode::MmapUseMlockIgnoreErrors},
                                                        {"mmap_madvise", LoadMode::MmapUseMadvise}};
  return modes;
}
