#include "model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "errors.h"
#include "files.h"
#include "load_mode.h"
#include "runtime_log.h"
#include "stats.h"

using executorch::aten::ScalarType;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Program;

namespace {

// Does one step of the runtime; throws Failure with the first error that the step logged.
template <typename Failure, typename Step>
void require(const std::string& what, Step step) {
  forget_runtime_errors();
  const Error error = step();
  if (error != Error::Ok) throw Failure(what + ": " + runtime_error_text(executorch::runtime::to_string(error)));
}

// Whether both are the same bit for bit.
bool is_same(const EValue& one, const EValue& other) {
  if (one.tag != other.tag) return false;
  if (one.isInt()) return one.toInt() == other.toInt();
  if (one.isBool()) return one.toBool() == other.toBool();
  if (one.isDouble()) return std::memcmp(&one.payload, &other.payload, sizeof(double)) == 0;
  if (!one.isTensor()) return true;
  const auto &first = one.toTensor(), &last = other.toTensor();
  return first.sizes() == last.sizes() &&
         std::memcmp(first.const_data_ptr(), last.const_data_ptr(), first.nbytes()) == 0;
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
    case ScalarType::BFloat16: text << values_text<executorch::aten::BFloat16>(tensor, all_values); break;
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

// Memory is shared between methods only for a setup: without shared buffers, methods could overwrite the state of others.
Model::Model(const Flags& flags, BackendOptions& options)
    : path_(flags.model_path),
      method_(flags.method_name),
      tracer_(flags.etdump_path.empty() ? nullptr : std::make_unique<Tracer>()) {
  const std::vector<std::string>& data = flags.data_paths;
  check_readable(path_, "model");  // the runtime does not report the cause
  for (const std::string& file : data) check_readable(file, "data");
  const bool shares_memory = !flags.setup_method.empty();
  module_ = std::make_unique<Module>(path_, data, load_modes().at(flags.load_mode), nullptr, nullptr, nullptr,
                                     shares_memory);
  require<UsageError>(path_ + (data.empty() ? "" : " with its data") + " is not a program that can be loaded", [&] {
    return module_->load(options.for_load(), Program::Verification::InternalConsistency);
  });
  load(method_, tracer_.get());
}

void Model::load(const std::string& method, Tracer* tracer) {
  const auto methods = module_->method_names();
  if (methods.ok() && methods->count(method) == 0) {
    std::string names;
    for (const std::string& name : std::set<std::string>(methods->begin(), methods->end())) {
      names += (names.empty() ? "" : ", ") + name;
    }
    throw UsageError("unknown method '" + method + "' of " + path_ + "; use one of " + names);
  }
  try {
    require<UsageError>("cannot load method '" + method + "' of " + path_,
                        [&] { return module_->load_method(method, nullptr, tracer); });
  } catch (const UsageError& error) {
    if (std::strstr(error.what(), "external_data_map is null") == nullptr) throw;
    throw UsageError(std::string(error.what()) + "; its weights are outside of it: name their .ptd file as data");
  }
}

void Model::set_inputs(const InputSource& source) { inputs_.emplace(*module_, method_, source); }

int64_t Model::set_up(const std::string& method, const InputSource& source) {
  load(method, nullptr);
  if (tracer_) tracer_->pause(true);  // the measured method is loaded with the tracer
  int64_t wall_ns = 0;
  for (const InputSource& each : Inputs::split_by_execution(*module_, method, source)) {
    wall_ns += execute(method, Inputs(*module_, method, each));
  }
  if (tracer_) tracer_->pause(false);
  return wall_ns;
}

int64_t Model::execute() { return execute(method_, *inputs_); }

int64_t Model::execute(const std::string& method, const Inputs& inputs) {
  // Set before each execution: a method may reuse its inputs' memory after reading them.
  require<RunError>("cannot set the inputs of method '" + method + "'",
                    [&] { return module_->set_inputs(method, inputs.values()); });
  int64_t wall_ns = 0;
  require<RunError>("method '" + method + "' failed", [&] {
    const int64_t start = now_ns();
    auto outputs = module_->execute(method);
    wall_ns = now_ns() - start;
    if (outputs.ok()) outputs_ = std::move(*outputs);
    return outputs.error();
  });
  return wall_ns;
}

void Model::keep_outputs() {
  kept_.clear();
  kept_tensors_.clear();
  for (const auto& output : outputs_) {
    if (output.isTensor()) kept_tensors_.push_back(executorch::extension::clone_tensor_ptr(output.toTensor()));
    kept_.push_back(output.isTensor() ? EValue(*kept_tensors_.back()) : output);
  }
}

bool Model::repeats_outputs() const {
  return std::equal(kept_.begin(), kept_.end(), outputs_.begin(), outputs_.end(), is_same);
}

void Model::write_outputs(const std::string& prefix) const {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (!kept_[i].isTensor()) continue;
    const auto& tensor = kept_[i].toTensor();
    write_complete(prefix + "-" + std::to_string(i) + ".bin", tensor.const_data_ptr(), tensor.nbytes());
  }
}

std::string Model::describe_outputs(bool all_values) const {
  std::ostringstream text;
  for (size_t i = 0; i < kept_.size(); ++i) {
    text << "Output " << i << ": ";
    if (kept_[i].isTensor()) text << tensor_text(kept_[i].toTensor(), all_values);
    else if (kept_[i].isInt()) text << kept_[i].toInt();
    else if (kept_[i].isBool()) text << (kept_[i].toBool() ? "true" : "false");
    else if (kept_[i].isDouble()) text << kept_[i].toDouble();
    else text << "not a tensor";
    text << "\n";
  }
  return text.str();
}

uint32_t Model::write_etdump(const std::string& path) {
  const auto dump = tracer_->get_etdump_data();
  const std::unique_ptr<void, decltype(&std::free)> owner(dump.buf, std::free);
  if (dump.buf == nullptr || dump.size == 0) throw RunError("cannot write " + path + ": the ETDump is empty");
  write_complete(path, dump.buf, dump.size);
  return crc32(dump.buf, dump.size);
}

void Model::stop_tracing() {
  module_->unload_method(method_);
  load(method_, nullptr);
}
