# atoll::torch: libtorch_cpu and libc10 of the PyPI wheel, as tools/setup unpacked it.
#
# Debian's Gloo must stand before libtorch_cpu in every link line: libtorch exports a newer, header-incompatible
# Gloo under the same names, and the first library named wins. Hence atoll::torch brings atoll::gloo with it.
set(atoll_torch_version 2.11.0)
if(NOT ATOLL_TORCH_ROOT)
    if(DEFINED ENV{ATOLL_CACHE})
        set(atoll_cache $ENV{ATOLL_CACHE})
    elseif(DEFINED ENV{XDG_CACHE_HOME})
        set(atoll_cache $ENV{XDG_CACHE_HOME}/atoll)
    else()
        set(atoll_cache $ENV{HOME}/.cache/atoll)
    endif()
    set(ATOLL_TORCH_ROOT ${atoll_cache}/libtorch-${atoll_torch_version} CACHE PATH "" FORCE)
endif()
if(NOT EXISTS ${ATOLL_TORCH_ROOT}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "no libtorch in ${ATOLL_TORCH_ROOT}: run tools/setup, or pass -DATOLL_TORCH_ROOT=DIR, "
        "or build what needs none with -DATOLL_TORCH=OFF")
endif()
# Its TORCH_VERSION, for programs that compare profiles of ops and see no libtorch.
set(atoll_torch_found_version)
foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${ATOLL_TORCH_ROOT}/include/torch/headeronly/version.h line REGEX "define TORCH_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND atoll_torch_found_version ${number})
endforeach()
list(JOIN atoll_torch_found_version "." atoll_torch_found_version)

add_library(atoll::torch INTERFACE IMPORTED GLOBAL)
# Searched after the system's headers: libtorch brings an fmt of its own, whose library it does not.
target_compile_options(atoll::torch INTERFACE "SHELL:-idirafter ${ATOLL_TORCH_ROOT}/include"
    "SHELL:-idirafter ${ATOLL_TORCH_ROOT}/include/torch/csrc/api/include")
target_compile_definitions(atoll::torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
# One item, so that CMake can't move Gloo behind libtorch when it removes duplicates.
target_link_libraries(atoll::torch INTERFACE
    "-Wl,--push-state,--no-as-needed,${atoll__gloo_gloo},${ATOLL_TORCH_ROOT}/lib/libtorch_cpu.so,${ATOLL_TORCH_ROOT}/lib/libc10.so,--pop-state")
target_link_options(atoll::torch INTERFACE -Wl,-rpath,${ATOLL_TORCH_ROOT}/lib
    -Wl,-rpath-link,${ATOLL_TORCH_ROOT}/lib -Wl,--allow-shlib-undefined)
