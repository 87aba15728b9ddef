// Devices that the command line names.
#pragma once
#include <string>

#include "outrace/core/device.h"

namespace outrace::app {

// Throws UsageError for what is no device's name or computes nothing, Error(device) for a device that is not here.
Device asked_device(const std::string& name);

}  // namespace outrace::app
