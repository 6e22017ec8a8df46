// Compiles asio's own code once (ASIO_SEPARATE_COMPILATION), so that the other files of net/ only see declarations.
#include <asio/impl/src.hpp>
