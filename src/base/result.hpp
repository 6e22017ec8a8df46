// Result<T>: a value or one line that a user can act on.
//
// Every fallible function of src/ returns it; exceptions stop at the libraries that throw. The message says
// what, which, why and what to try: "rank 3: chdir /data: No such file or directory".
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace ddl {

struct Error {
    std::string message;

    friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(std::string message) {
    return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace ddl
