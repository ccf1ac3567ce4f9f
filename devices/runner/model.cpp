#include "model.h"

#include <cstdlib>
#include <random>
#include <sstream>

#include "errors.h"
#include "files.h"
#include "runtime_log.h"
#include "stats.h"

using executorch::aten::ScalarType;
using executorch::etdump::ETDumpGen;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Program;
using executorch::runtime::TensorInfo;

namespace {

// XNNPACK's kernels may read past the end of a buffer.
constexpr size_t kPadding = 128;

template <typename Failure>
void require(Error error, const std::string& what) {
  if (error != Error::Ok) throw Failure(what + ": " + first_runtime_error(executorch::runtime::to_string(error)));
}

template <typename Float>
void fill_floats(std::vector<char>& bytes, std::mt19937& random) {
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  auto* data = reinterpret_cast<Float*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(Float); ++i) data[i] = static_cast<Float>(values(random));
}

// 0 and 1 are valid values of all other types, also as an index or a bool.
void fill_pattern(std::vector<char>& bytes, ScalarType type, std::mt19937& random) {
  if (type == ScalarType::Float) fill_floats<float>(bytes, random);
  else if (type == ScalarType::Double) fill_floats<double>(bytes, random);
  else if (type == ScalarType::Half) fill_floats<executorch::aten::Half>(bytes, random);
  else {
    const size_t width = executorch::runtime::elementSize(type);
    for (size_t i = 0; i < bytes.size(); i += width) bytes[i] = static_cast<char>(random() & 1);
  }
}

template <typename Value>
std::string values_text(const executorch::aten::Tensor& tensor, bool all_values) {
  constexpr ssize_t kShown = 5;
  std::ostringstream text;
  const Value* data = tensor.const_data_ptr<Value>();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    if (!all_values && i == kShown && tensor.numel() > 2 * kShown) {
      text << ", ...";
      i = tensor.numel() - kShown;
    }
    text << (i ? ", " : "") << +data[i];
  }
  return text.str();
}

std::string tensor_text(const executorch::aten::Tensor& tensor, bool all_values) {
  std::ostringstream text;
  text << "tensor(sizes=[";
  for (ssize_t i = 0; i < tensor.dim(); ++i) text << (i ? ", " : "") << tensor.size(i);
  text << "], [";
  switch (tensor.scalar_type()) {
    case ScalarType::Float: text << values_text<float>(tensor, all_values); break;
    case ScalarType::Double: text << values_text<double>(tensor, all_values); break;
    case ScalarType::Half: text << values_text<executorch::aten::Half>(tensor, all_values); break;
    case ScalarType::Int: text << values_text<int32_t>(tensor, all_values); break;
    case ScalarType::Long: text << values_text<int64_t>(tensor, all_values); break;
    case ScalarType::Char: text << values_text<int8_t>(tensor, all_values); break;
    case ScalarType::Byte: text << values_text<uint8_t>(tensor, all_values); break;
    case ScalarType::Bool: text << values_text<bool>(tensor, all_values); break;
    default: text << tensor.nbytes() << " bytes"; break;
  }
  return text.str() + "])";
}

}  // namespace

Model::Model(const std::string& path, const std::string& method, bool traced) : method_(method) {
  check_readable(path, "model");  // the runtime does not report the cause
  auto tracer = traced ? std::make_unique<ETDumpGen>() : nullptr;
  tracer_ = tracer.get();
  module_ = std::make_unique<Module>(path, Module::LoadMode::File, std::move(tracer));
  const Error loaded = module_->load(Program::Verification::InternalConsistency);
  require<UsageError>(loaded, path + " is not a program that can be loaded");
  const auto methods = module_->method_names();
  if (methods.ok() && methods->count(method) == 0) {
    std::string names;
    for (const std::string& name : *methods) names += (names.empty() ? "" : ", ") + name;
    throw UsageError("unknown method '" + method + "' of " + path + "; use one of " + names);
  }
  require<UsageError>(module_->load_method(method), "cannot load method '" + method + "' of " + path);
}

void Model::set_inputs(const std::vector<std::string>& files) {
  const auto meta = module_->method_meta(method_);
  require<RunError>(meta.error(), "cannot read the inputs of method '" + method_ + "'");
  const size_t count = meta->num_inputs();
  if (!files.empty() && files.size() != count) {
    throw UsageError("method '" + method_ + "' has " + std::to_string(count) + " inputs, but --inputs lists " +
                     std::to_string(files.size()) + " files");
  }
  std::mt19937 random(0);
  for (size_t i = 0; i < count; ++i) {
    const auto info = meta->input_tensor_meta(i);
    if (!info.ok()) throw UsageError("input " + std::to_string(i) + " of method '" + method_ + "' is not a tensor");
    std::vector<char> bytes(info->nbytes());
    if (files.empty()) {
      fill_pattern(bytes, info->scalar_type(), random);
    } else {
      bytes = read_file(files[i], "input");
      if (bytes.size() != info->nbytes()) {
        throw UsageError("input " + std::to_string(i) + " needs " + std::to_string(info->nbytes()) + " bytes, but " +
                         files[i] + " has " + std::to_string(bytes.size()));
      }
    }
    bytes.resize(bytes.size() + kPadding);
    input_bytes_.push_back(std::move(bytes));
    using executorch::aten::DimOrderType;
    using executorch::aten::SizesType;
    input_tensors_.push_back(executorch::extension::make_tensor_ptr(
        std::vector<SizesType>(info->sizes().begin(), info->sizes().end()), input_bytes_.back().data(),
        std::vector<DimOrderType>(info->dim_order().begin(), info->dim_order().end()), {}, info->scalar_type()));
    inputs_.emplace_back(input_tensors_.back());
  }
}

int64_t Model::execute() {
  // Set before each execution: a method may reuse its inputs' memory after reading them.
  require<RunError>(module_->set_inputs(method_, inputs_), "cannot set the inputs of method '" + method_ + "'");
  const int64_t start = now_ns();
  auto outputs = module_->execute(method_);
  const int64_t end = now_ns();
  require<RunError>(outputs.error(), "method '" + method_ + "' failed");
  outputs_ = std::move(*outputs);
  return end - start;
}

void Model::write_outputs(const std::string& prefix) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].isTensor()) continue;
    const auto& tensor = outputs_[i].toTensor();
    write_complete(prefix + "-" + std::to_string(i) + ".bin", tensor.const_data_ptr(), tensor.nbytes());
  }
}

std::string Model::describe_outputs(bool all_values) const {
  std::ostringstream text;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    text << "Output " << i << ": ";
    if (outputs_[i].isTensor()) text << tensor_text(outputs_[i].toTensor(), all_values);
    else if (outputs_[i].isInt()) text << outputs_[i].toInt();
    else if (outputs_[i].isDouble()) text << outputs_[i].toDouble();
    else text << "not a tensor";
    text << "\n";
  }
  return text.str();
}

void Model::write_etdump(const std::string& path) {
  const auto dump = tracer_->get_etdump_data();
  const std::unique_ptr<void, decltype(&std::free)> owner(dump.buf, std::free);
  if (dump.buf == nullptr || dump.size == 0) throw RunError("cannot write " + path + ": the ETDump is empty");
  write_complete(path, dump.buf, dump.size);
}
