// Scratch memory. Each thread keeps its last block for the next call: fresh pages cost more than the arithmetic on
// them.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _WIN32
#include <malloc.h>
#endif

namespace svae::SVAE_VARIANT {

constexpr size_t kKeep = size_t(256) << 20, kHuge = size_t(2) << 20;

#ifdef _WIN32  // its C library has no aligned_alloc
inline void* allocate(size_t alignment, size_t size) { return _aligned_malloc(size, alignment); }
inline void release(void* memory) { _aligned_free(memory); }
#else
inline void* allocate(size_t alignment, size_t size) { return std::aligned_alloc(alignment, size); }
inline void release(void* memory) { std::free(memory); }
#endif

struct Block {
  void* memory = nullptr;
  size_t size = 0;

  Block() = default;
  explicit Block(size_t bytes) {
    const size_t page = bytes >= kHuge ? kHuge : 64;
    size = (bytes + page - 1) / page * page;
    memory = allocate(page, size);
    if (!memory) throw std::bad_alloc();
#ifdef __linux__
    if (page == kHuge) madvise(memory, size, MADV_HUGEPAGE);
#endif
  }
  Block(const Block&) = delete;
  ~Block() { release(memory); }
  void swap(Block& other) {
    void* m = memory;
    size_t s = size;
    memory = other.memory, size = other.size, other.memory = m, other.size = s;
  }
};

inline Block& spare() {
  thread_local Block block;
  return block;
}

template <class V>
class Arena {
  Block block_;
  V* next_;

 public:
  explicit Arena(int64_t n) {
    const size_t bytes = size_t(n) * sizeof(V) + 64;  // a whole vector may be read at the end of the last array
    if (spare().size >= bytes) {
      block_.swap(spare());
    } else {
      Block fresh(bytes);
      block_.swap(fresh);
    }
    next_ = static_cast<V*>(block_.memory);
  }
  ~Arena() {
    if (block_.size <= kKeep && block_.size > spare().size) block_.swap(spare());
  }
  V* take(int64_t n) {
    V* p = next_;
    next_ += n;
    return p;
  }
};

}  // namespace svae::SVAE_VARIANT
