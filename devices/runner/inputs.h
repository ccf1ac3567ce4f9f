// The inputs of one method: tensors with the raw bytes of files, or with a seeded pattern. An input that is a number is
// a constant of the program, which nothing else can be set to.
#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <string>
#include <vector>

#include "flags.h"

class Inputs {
 public:
  // Reads the inputs of a loaded method; each has the program's shape (the largest, if it is dynamic) unless
  // `source.shapes` gives another. Throws UsageError if a number of files, a shape or the size of a file is wrong.
  Inputs(executorch::extension::Module& module, const std::string& method, const InputSource& source);

  // Returns the inputs of consecutive executions of a method: one for each group of as many files as it has tensors.
  static std::vector<InputSource> split_by_execution(executorch::extension::Module& module, const std::string& method,
                                                    const InputSource& source);

  const std::vector<executorch::runtime::EValue>& values() const { return values_; }

 private:
  std::vector<std::vector<char>> bytes_;
  std::vector<executorch::extension::TensorPtr> tensors_;
  std::vector<executorch::runtime::EValue> values_;
};
