// What a fuzz target is: one function over arbitrary bytes that must neither crash nor break a promise of its parser.
//
// With DDLAUNCH_FUZZERS each target is a libFuzzer program; otherwise replay.cpp feeds it the corpus and mutations of
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace ddl::fuzz {

// Aborts, so that the fuzzer keeps the input.
inline void promise(bool kept, const char* what) {
    if (!kept) {
        std::fprintf(stderr, "broken promise: %s\n", what);
        std::abort();
    }
}

}  // namespace ddl::fuzz
