// Faults planted on purpose, one a call: `canary heap|freed|overflow|leak`. Built only with the sanitizers, which must
// report each.
#include <cstdio>
#include <cstring>
#include <limits>

namespace {
// Through volatile, so that the compiler neither sees nor removes the fault.
volatile int one = 1;
int* volatile lost = nullptr;

int heap() {
  int* volatile values = new int[4]();
  const int seen = values[3 + one];
  delete[] values;
  return seen;
}

int freed() {
  int* volatile value = new int(7);
  delete value;
  return *value;
}

int overflow() {
  volatile int largest = std::numeric_limits<int>::max();
  return largest + one;
}

int leak() {
  lost = new int[1000]();
  lost = nullptr;
  return 0;
}
}  // namespace

int main(int count, char** arguments) {
  struct {
    const char* name;
    int (*commit)();
  } const faults[] = {{"heap", heap}, {"freed", freed}, {"overflow", overflow}, {"leak", leak}};
  for (const auto& fault : faults) {
    if (count < 2 || std::strcmp(arguments[1], fault.name)) continue;
    const int result = fault.commit();
    std::printf("%d: %s went unnoticed\n", result, fault.name);
    return 0;
  }
  return 2;
}
