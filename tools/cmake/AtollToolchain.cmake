# Compiler cache, fast linker, warnings, sanitizers: carried by the interface target atoll_flags.
find_program(ATOLL_CCACHE ccache)
if(ATOLL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Paths are hashed relative to the checkout, so that two checkouts share one cache; the
    # sloppiness settings are what ccache needs to cache files with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${ATOLL_CCACHE})
endif()

add_library(atoll_flags INTERFACE)
target_compile_options(atoll_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -Wno-psabi -Wno-missing-field-initializers -fno-math-errno)
target_include_directories(atoll_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})

find_program(ATOLL_MOLD mold)
if(ATOLL_MOLD)
    target_link_options(atoll_flags INTERFACE -fuse-ld=mold)
endif()

if(ATOLL_SANITIZE)
    if(ATOLL_SANITIZE MATCHES "thread" AND ATOLL_SANITIZE MATCHES "address")
        message(FATAL_ERROR "ATOLL_SANITIZE: address and thread can't be combined; choose one")
    endif()
    target_compile_options(atoll_flags INTERFACE -fsanitize=${ATOLL_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(atoll_flags INTERFACE -fsanitize=${ATOLL_SANITIZE})
    if(ATOLL_SANITIZE MATCHES "undefined")
        # A finding ends the program, so that the test fails.
        target_compile_options(atoll_flags INTERFACE -fno-sanitize-recover=undefined)
    endif()
endif()

# Code that is not worth -O2: a third less time to compile.
add_library(atoll_cold_code INTERFACE)
target_compile_options(atoll_cold_code INTERFACE $<$<CONFIG:RelWithDebInfo>:-Og>)

# Code whose results must be the same bits on every processor takes this instead of the defaults:
# g++ otherwise contracts a*b+c to one rounding where the processor has FMA.
add_library(atoll_exact_arithmetic INTERFACE)
target_compile_options(atoll_exact_arithmetic INTERFACE -ffp-contract=off)
