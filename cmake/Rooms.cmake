# What all rooms of the house share: warnings, sanitizers, and how a room or a unit test is declared.

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)

add_library(ddl_options INTERFACE)
target_compile_options(ddl_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  # g++ 12 reports impossible overlaps in std::string's operator+ (GCC bug 105329).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(DDLAUNCH_SANITIZE)
  target_compile_options(ddl_options INTERFACE
    -fsanitize=${DDLAUNCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ddl_options INTERFACE -fsanitize=${DDLAUNCH_SANITIZE})
endif()

# ddl_room(<name> SOURCES a.cpp … [LINKS ddl_base …]): static library ddl_<name> of the files in src/<name>.
function(ddl_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(ddl_${name} STATIC ${ARG_SOURCES})
  target_include_directories(ddl_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(ddl_${name} PUBLIC ${ARG_LINKS} tl::expected PRIVATE ddl_options)
endfunction()

# Test code is compiled often and runs for milliseconds: unoptimised, it compiles up to three times faster.
add_library(ddl_test_options INTERFACE)
target_compile_options(ddl_test_options INTERFACE -O0)
if(DDLAUNCH_SANITIZE)
  target_compile_options(ddl_test_options INTERFACE -g1)
endif()
target_link_libraries(ddl_test_options INTERFACE ddl_options)

# ddl_unit_test(<name> SOURCES a_test.cpp … LINKS ddl_x …): GoogleTest program registered with CTest under unit/.
function(ddl_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest_main ddl_test_options)
  add_test(NAME unit/${name} COMMAND ${name})
  set_tests_properties(unit/${name} PROPERTIES LABELS unit TIMEOUT 120)
endfunction()
