include(GoogleTest)

# plena_room(NAME DEPENDS room... [LIBRARIES target...] [TEST_DEPENDS target...])
#
# Makes the static library plena_NAME from this folder's *.cc and, from its *_test.cc, the test
# program NAME_test. Tests are compiled without optimisation, which halves the time they take to build;
# OPTIMIZED_TESTS is for rooms whose tests compute a lot themselves. UNITY and UNITY_TESTS compile several
# sources at a time where PLENA_UNITY is on: rooms that are mostly templates of others (JSON, options, formatting,
# matchers) take a third of the time to build; those with kernels stay file by file. DEPENDS names rooms (linked publicly), LIBRARIES other targets (privately).
function(plena_room name)
  cmake_parse_arguments(ROOM "OPTIMIZED_TESTS;UNITY;UNITY_TESTS" "" "DEPENDS;LIBRARIES;PUBLIC_LIBRARIES;TEST_DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|main)\\.cc$")

  if(sources)
    add_library(plena_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(plena_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  if(sources AND ROOM_UNITY AND PLENA_UNITY)
    set_target_properties(plena_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
  target_include_directories(plena_${name} ${scope} "${CMAKE_SOURCE_DIR}")
  foreach(dependency IN LISTS ROOM_DEPENDS)
    target_link_libraries(plena_${name} ${scope} plena_${dependency})
  endforeach()
  target_link_libraries(plena_${name} ${scope} ${ROOM_PUBLIC_LIBRARIES})
  if(sources)
    target_link_libraries(plena_${name} PRIVATE ${ROOM_LIBRARIES})
  endif()

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE plena_${name} ${ROOM_LIBRARIES} ${ROOM_TEST_DEPENDS}
                          GTest::gmock_main)
    if(ROOM_UNITY_TESTS AND PLENA_UNITY)
      set_target_properties(${name}_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    endif()
    if(NOT ROOM_OPTIMIZED_TESTS)
      target_compile_options(${name}_test PRIVATE -O0)
    endif()
    target_compile_definitions(${name}_test PRIVATE PLENA_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         TEST_PREFIX "${name}/" PROPERTIES TIMEOUT 900)
  endif()
endfunction()
