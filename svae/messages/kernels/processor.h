// What an x86 processor can do and its system keeps between threads: by cpuid, which every compiler has.
#pragma once
#include <cpuid.h>

namespace svae {

constexpr unsigned kFma = 1u << 12, kSaves = 1u << 27;  // ECX of leaf 1
constexpr unsigned kAvx2 = 1u << 5, kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;  // EBX of leaf 7
constexpr unsigned kSaves256 = 0x06, kSaves512 = 0xe6;  // registers in XCR0

struct Processor {
  bool avx2 = false, avx512 = false;

  Processor() {
    unsigned a, b, c, d, extended, saved, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kSaves) || !__get_cpuid_count(7, 0, &a, &extended, &b, &d)) return;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    avx2 = (saved & kSaves256) == kSaves256 && (extended & kAvx2) && (c & kFma);
    const unsigned all = kF | kDq | kBw | kVl;
    avx512 = avx2 && (saved & kSaves512) == kSaves512 && (extended & all) == all;
  }
};

}  // namespace svae
