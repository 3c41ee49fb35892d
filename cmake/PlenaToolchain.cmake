# Flags every target shares. -ffp-contract=off: a fused multiply-add happens only where the
# source says std::fma, so that results do not depend on the compiler (semantics 4.5).
add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror
                    -Wno-missing-field-initializers
                    -Wno-restrict  # false positives of g++ 12 on std::string (GCC PR 105651)
                    -ffp-contract=off -fno-math-errno)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(PLENA_SANITIZE)
  add_compile_options(-fsanitize=${PLENA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${PLENA_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()
