#include "outrace/backend/opencl/opencl_driver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "outrace/backend/gpu/binary_cache.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/backend/opencl/opencl_memory.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace::opencl {
namespace {

using gpu::DeviceFacts;
using gpu::Launch;

// Copies to the device up to this size go through a copy of their own, so that the host need not wait for the queue.
constexpr int64_t kStaged = 4 << 20;

class OpenclKernel final : public gpu::Kernel {
 public:
  OpenclKernel(cl_program program, std::string name) : program(program), name(std::move(name)) {}
  const cl_program program;
  const std::string name;
};

class OpenclModule final : public gpu::Module {
 public:
  explicit OpenclModule(cl_program program) : program_(program) {}
  std::shared_ptr<gpu::Kernel> kernel(const char* name) override {
    return std::make_shared<OpenclKernel>(program_, name);
  }

 private:
  cl_program program_;
};

std::string text_of(const Api& api, cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (api.device_info(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  api.device_info(device, what, bytes, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

template <class T>
T number_of(const Api& api, cl_device_id device, cl_device_info what) {
  T value{};
  api.device_info(device, what, sizeof value, &value, nullptr);
  return value;
}

DeviceFacts facts_of(const Api& api, cl_device_id id) {
  DeviceFacts f;
  f.language = gpu::Language::opencl;
  f.name = text_of(api, id, CL_DEVICE_NAME);
  f.vendor = text_of(api, id, CL_DEVICE_VENDOR);
  f.driver = cat(text_of(api, id, CL_DEVICE_VERSION), ", driver ", text_of(api, id, CL_DRIVER_VERSION));
  f.units = static_cast<int>(number_of<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS));
  f.memory_bytes = static_cast<int64_t>(number_of<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE));
  f.largest_array_bytes = static_cast<int64_t>(number_of<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  f.local_bytes = static_cast<int64_t>(number_of<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE));
  f.parameter_bytes = static_cast<int64_t>(number_of<size_t>(api, id, CL_DEVICE_MAX_PARAMETER_SIZE));
  f.largest_group = static_cast<int>(number_of<size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  f.has_f64 = number_of<cl_device_fp_config>(api, id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  f.is_cpu = (number_of<cl_device_type>(api, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  f.rounds_sqrt =
      (number_of<cl_device_fp_config>(api, id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  if (f.has_f64) f.features.emplace_back("f64");
  if (f.is_cpu) f.features.emplace_back("cpu");
  return f;
}

class OpenclDriver;

// Launches with their own kernel objects, so that arguments stay set from run to run.
class OpenclList final : public gpu::LaunchList {
 public:
  OpenclList(OpenclDriver& driver, std::vector<Launch> launches);
  ~OpenclList() override;
  void run(void* const* addresses) override;
  std::vector<double> run_timed(void* const* addresses) override;

 private:
  struct ArrayArg {
    cl_uint index;
    int slot;
    int64_t offset;
    const void* bound;  // the address it was set for
  };
  struct Prepared {
    cl_kernel kernel = nullptr;
    std::vector<ArrayArg> arrays;
    int64_t generation = -1;  // of the memory when they were bound
    std::array<size_t, 3> global{}, local{};
    std::shared_ptr<gpu::LibraryCall> library;
    std::string label;
  };
  void enqueue(Prepared& p, void* const* addresses);

  OpenclDriver& driver_;
  std::vector<Prepared> launches_;
};

class OpenclDriver final : public gpu::Driver {
 public:
  OpenclDriver(const Api& api, cl_device_id id, DeviceFacts facts)
      : api(api), id_(id), facts_(std::move(facts)), context_(make_context()), memory(api, context_, facts_.name) {
    cl_int code = CL_SUCCESS;
    queue = api.create_queue(context_, id_, 0, &code);
    check(code, "open", facts_.name);
    options_ = "-cl-std=CL1.2";
    if (facts_.rounds_sqrt) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  }

  const DeviceFacts& facts() const override { return facts_; }
  void* allocate(int64_t bytes) override { return memory.allocate(bytes); }
  void free(void* pointer, int64_t bytes) override { memory.free(pointer, bytes); }

  void copy_in(void* to, const void* host, int64_t bytes) override {
    const Memory::Place place = memory.find(to);
    const size_t offset = static_cast<size_t>(place.offset), size = static_cast<size_t>(bytes);
    release_staging();
    if (bytes > kStaged) {
      check(api.enqueue_write(queue, place.buffer, CL_TRUE, offset, size, host, 0, nullptr, nullptr), "copy",
            facts_.name);
      return;
    }
    Staging& s = staging_.emplace_back();
    s.bytes.reset(new char[size]);
    std::memcpy(s.bytes.get(), host, size);
    check(api.enqueue_write(queue, place.buffer, CL_FALSE, offset, size, s.bytes.get(), 0, nullptr, &s.done), "copy",
          facts_.name);
  }

  void copy_out(void* host, const void* from, int64_t bytes) override {
    const Memory::Place place = memory.find(from);
    check(api.enqueue_read(queue, place.buffer, CL_TRUE, static_cast<size_t>(place.offset), static_cast<size_t>(bytes),
                           host, 0, nullptr, nullptr),
          "copy", facts_.name);
    release_staging();
  }

  void copy(void* to, const void* from, int64_t bytes) override {
    const Memory::Place source = memory.find(from), target = memory.find(to);
    check(api.enqueue_copy(queue, source.buffer, target.buffer, static_cast<size_t>(source.offset),
                           static_cast<size_t>(target.offset), static_cast<size_t>(bytes), 0, nullptr, nullptr),
          "copy", facts_.name);
  }

  void fill(void* to, uint8_t byte, int64_t bytes) override {
    const Memory::Place place = memory.find(to);
    check(api.enqueue_fill(queue, place.buffer, &byte, 1, static_cast<size_t>(place.offset), static_cast<size_t>(bytes),
                           0, nullptr, nullptr),
          "fill", facts_.name);
  }

  std::shared_ptr<gpu::Module> build(const std::string& source) override {
    std::shared_ptr<gpu::Module>& module = modules_[source];
    if (!module) module = std::make_shared<OpenclModule>(compile(source));
    return module;
  }

  std::unique_ptr<gpu::LaunchList> prepare(std::vector<Launch> launches) override {
    return std::make_unique<OpenclList>(*this, std::move(launches));
  }

  void synchronize() override {
    check(api.finish(queue), "synchronize", facts_.name);
    release_staging();
  }

  const Api& api;
  cl_command_queue queue = nullptr;

 private:
  struct Staging {
    std::unique_ptr<char[]> bytes;
    cl_event done = nullptr;
  };

  cl_context make_context() {
    cl_int code = CL_SUCCESS;
    cl_context context = api.create_context(nullptr, 1, &id_, nullptr, nullptr, &code);
    check(code, "open", facts_.name);
    return context;
  }

  // Of copies that are done; they end in order.
  void release_staging() {
    while (!staging_.empty()) {
      cl_int state = CL_COMPLETE;
      if (staging_.front().done != nullptr)
        api.event_info(staging_.front().done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
      if (state > CL_COMPLETE) return;
      if (staging_.front().done != nullptr) api.release_event(staging_.front().done);
      staging_.pop_front();
    }
  }

  // PoCL keeps its own, and asking it for a binary compiles everything once more.
  bool keeps_binaries() const {
    return facts_.driver.find("PoCL") == std::string::npos || !env_string("OUTRACE_KERNEL_CACHE").empty();
  }

  cl_program compile(const std::string& source) {
    const std::string key = cat(source, "\n", options_, "\n", facts_.name, "\n", facts_.driver);
    if (const auto binary = keeps_binaries() ? gpu::load_binary(key) : std::nullopt) {
      const size_t size = binary->size();
      const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
      cl_int code = CL_SUCCESS, status = CL_SUCCESS;
      cl_program program = api.create_from_binary(context_, 1, &id_, &size, &bytes, &status, &code);
      if (code == CL_SUCCESS && status == CL_SUCCESS &&
          api.build_program(program, 1, &id_, options_.c_str(), nullptr, nullptr) == CL_SUCCESS)
        return program;
      if (code == CL_SUCCESS) api.release_program(program);
    }
    const char* text = source.c_str();
    cl_int code = CL_SUCCESS;
    cl_program program = api.create_program(context_, 1, &text, nullptr, &code);
    check(code, "compile", facts_.name);
    if (const cl_int built = api.build_program(program, 1, &id_, options_.c_str(), nullptr, nullptr);
        built != CL_SUCCESS) {
      size_t bytes = 0;
      api.build_info(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
      std::string log(bytes, '\0');
      api.build_info(program, id_, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
      fail(ErrorKind::device, "[compile] ", facts_.name, " says ", error_name(built), " of a kernel's text:\n",
           log.substr(0, log.find('\0')), "\n", source);
    }
    if (keeps_binaries()) save(program, key);
    return program;
  }

  void save(cl_program program, const std::string& key) {
    size_t size = 0;
    if (api.program_info(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || size == 0)
      return;
    std::vector<char> binary(size);
    char* target = binary.data();
    if (api.program_info(program, CL_PROGRAM_BINARIES, sizeof(char*), &target, nullptr) == CL_SUCCESS)
      gpu::save_binary(key, binary);
  }

  cl_device_id id_;
  DeviceFacts facts_;
  cl_context context_;
  std::string options_;
  std::unordered_map<std::string, std::shared_ptr<gpu::Module>> modules_;
  std::deque<Staging> staging_;

 public:
  Memory memory;
};

OpenclList::OpenclList(OpenclDriver& driver, std::vector<Launch> launches) : driver_(driver) {
  for (Launch& launch : launches) {
    Prepared& p = launches_.emplace_back();
    p.label = launch.label;
    p.library = launch.library;
    if (p.library) continue;
    const auto& kernel = static_cast<const OpenclKernel&>(*launch.kernel);
    cl_int code = CL_SUCCESS;
    p.kernel = driver_.api.create_kernel(kernel.program, kernel.name.c_str(), &code);
    check(code, kernel.name.c_str(), driver_.facts().name);
    for (int d = 0; d < 3; ++d) {
      p.local[d] = static_cast<size_t>(launch.local[d]);
      p.global[d] = static_cast<size_t>(launch.groups[d]) * p.local[d];
    }
    cl_uint index = 0;
    const auto set = [&](const auto& value) {
      check(driver_.api.set_argument(p.kernel, index++, sizeof value, &value), p.label.c_str(), driver_.facts().name);
    };
    for (const gpu::Arg& a : launch.args) {
      switch (a.kind) {
        case gpu::Arg::Kind::array:
          p.arrays.push_back({index, a.slot, a.integer, nullptr});
          index += 2;
          break;
        case gpu::Arg::Kind::i64: set(static_cast<cl_long>(a.integer)); break;
        case gpu::Arg::Kind::i32: set(static_cast<cl_int>(a.integer)); break;
        case gpu::Arg::Kind::f32: set(static_cast<cl_float>(a.real)); break;
        case gpu::Arg::Kind::f64: set(static_cast<cl_double>(a.real)); break;
      }
    }
  }
}

OpenclList::~OpenclList() {
  for (const Prepared& p : launches_)
    if (p.kernel != nullptr) driver_.api.release_kernel(p.kernel);
}

void OpenclList::enqueue(Prepared& p, void* const* addresses) {
  if (p.library) return p.library->enqueue(driver_.queue, addresses);
  const std::string& device = driver_.facts().name;
  for (ArrayArg& a : p.arrays) {
    const char* address = static_cast<const char*>(addresses[a.slot]);
    if (address == a.bound && address != nullptr && p.generation == driver_.memory.generation()) continue;
    Memory::Place place;
    if (address != nullptr) place = driver_.memory.find(address);
    const cl_long offset = place.offset + a.offset;
    check(driver_.api.set_argument(p.kernel, a.index, sizeof place.buffer, &place.buffer), p.label.c_str(), device);
    check(driver_.api.set_argument(p.kernel, a.index + 1, sizeof offset, &offset), p.label.c_str(), device);
    a.bound = address;
  }
  p.generation = driver_.memory.generation();
  check(driver_.api.enqueue_kernel(driver_.queue, p.kernel, 3, nullptr, p.global.data(), p.local.data(), 0, nullptr,
                                   nullptr),
        p.label.c_str(), device);
}

void OpenclList::run(void* const* addresses) {
  for (Prepared& p : launches_) enqueue(p, addresses);
  driver_.api.flush(driver_.queue);
}

std::vector<double> OpenclList::run_timed(void* const* addresses) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> out;
  driver_.synchronize();
  for (Prepared& p : launches_) {
    const auto start = Clock::now();
    enqueue(p, addresses);
    driver_.synchronize();
    out.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return out;
}

}  // namespace

std::vector<std::unique_ptr<gpu::Driver>> open_drivers(std::string* why) {
  std::vector<std::unique_ptr<gpu::Driver>> drivers;
  const Api* api = open_api(why);
  if (api == nullptr) return drivers;
  cl_uint count = 0;
  api->get_platforms(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) api->get_platforms(count, platforms.data(), nullptr);
  std::string unfit;
  for (cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (api->get_devices(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(devices);
    api->get_devices(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    for (cl_device_id id : ids) {
      DeviceFacts f = facts_of(*api, id);
      const bool usable = number_of<cl_bool>(*api, id, CL_DEVICE_AVAILABLE) != 0 &&
                          number_of<cl_bool>(*api, id, CL_DEVICE_COMPILER_AVAILABLE) != 0 &&
                          f.largest_group >= gpu::kGroup;
      if (usable)
        drivers.push_back(std::make_unique<OpenclDriver>(*api, id, std::move(f)));
      else
        unfit = cat("; ", f.name, " has no compiler or groups below ", gpu::kGroup);
    }
  }
  std::stable_sort(drivers.begin(), drivers.end(),
                   [](const auto& a, const auto& b) { return a->facts().is_cpu < b->facts().is_cpu; });
  if (drivers.empty() && why != nullptr)
    *why = cat("no OpenCL device was found", unfit,
               "; install a driver of the card (Debian: intel-opencl-icd, mesa-opencl-icd; for a try on the CPU: "
               "pocl-opencl-icd)");
  return drivers;
}

}  // namespace outrace::opencl
