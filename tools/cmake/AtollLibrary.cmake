# atoll_library(NAME SOURCES ... [EXACT] [COLD] [USES targets...] [PRIVATE_USES targets...])
# One target per folder. EXACT: the same bits on every processor (see AtollToolchain.cmake). COLD: nothing in it runs
# often enough for -O2 to be worth the time it takes to compile.
# A few sources are compiled as one: most of the time goes into headers and templates, which they share (a clean build
# takes two thirds of the time). So names in the unnamed namespaces of one folder must differ.
function(atoll_library name)
    cmake_parse_arguments(arg "EXACT;COLD" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
    add_library(${name} STATIC ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    target_link_libraries(${name} PUBLIC atoll_flags ${arg_USES} PRIVATE ${arg_PRIVATE_USES})
    if(arg_EXACT)
        target_link_libraries(${name} PRIVATE atoll_exact_arithmetic)
    endif()
    if(arg_COLD)
        target_link_libraries(${name} PRIVATE atoll_cold_code)
    endif()
endfunction()

# What sanitizers read from a test's environment, and from that of the programs it starts. Libraries that are not
# instrumented (libzmq, Gloo) order memory by atomics that the thread sanitizer can't see: it leaves their code out.
set(atoll_sanitizers ${CMAKE_SOURCE_DIR}/tools/sanitizers)
set(atoll_sanitizer_environment
    "TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1:suppressions=${atoll_sanitizers}/thread.txt"
    "ASAN_OPTIONS=detect_stack_use_after_return=1"
    "UBSAN_OPTIONS=print_stacktrace=1")

# What every test includes is parsed once: half of the time that a small test takes.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests/headers.cpp CONTENT "")
add_library(atoll_test_headers OBJECT ${CMAKE_BINARY_DIR}/tests/headers.cpp)
target_link_libraries(atoll_test_headers PRIVATE atoll_flags atoll_cold_code fmt::fmt GTest::gtest_main)
target_include_directories(atoll_test_headers PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_precompile_headers(atoll_test_headers PRIVATE <algorithm> <cmath> <cstdint> <filesystem> <functional> <map>
    <memory> <optional> <set> <span> <string> <vector> <fmt/format.h> <gtest/gtest.h>)

# atoll_test(KIND AREA USES targets... [SOURCES ...] [TIMEOUT seconds])
# Builds tests/KIND/AREA_test.cpp (or SOURCES) and registers it under the label KIND. A case that skips itself fails
# the test: only those of kind gpu may, where there is no device.
function(atoll_test kind area)
    cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;USES" ${ARGN})
    set(name ${kind}_${area})
    if(NOT arg_SOURCES)
        set(arg_SOURCES ${kind}/${area}_test.cpp)
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    if(ATOLL_SANITIZE)
        math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")
    endif()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE atoll_test_support atoll_cold_code ${arg_USES} GTest::gtest_main)
    if(NOT arg_USES MATCHES "OpenMP|torch")  # whose definitions the parsed headers were not made with
        target_precompile_headers(${name} REUSE_FROM atoll_test_headers)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${kind}.${area} COMMAND ${name})
    set_tests_properties(${kind}.${area} PROPERTIES LABELS ${kind} TIMEOUT ${arg_TIMEOUT}
        ENVIRONMENT "ATOLL_BINARY_DIR=${CMAKE_BINARY_DIR}/bin;ATOLL_SOURCE_DIR=${CMAKE_SOURCE_DIR};${atoll_sanitizer_environment}")
    if(NOT kind STREQUAL gpu)
        set_tests_properties(${kind}.${area} PROPERTIES FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
    endif()
endfunction()
