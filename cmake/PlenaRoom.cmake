include(GoogleTest)

# plena_room(NAME DEPENDS room... [LIBRARIES target...] [TEST_DEPENDS target...])
#
# Makes the static library plena_NAME from this folder's *.cc and, from its *_test.cc, the test
# program NAME_test. Tests are compiled without optimisation, which halves the time they take to build;
# OPTIMIZED_TESTS is for rooms whose tests compute a lot themselves. DEPENDS names rooms (linked publicly), LIBRARIES other targets (privately).
function(plena_room name)
  cmake_parse_arguments(ROOM "OPTIMIZED_TESTS" "" "DEPENDS;LIBRARIES;PUBLIC_LIBRARIES;TEST_DEPENDS" ${ARGN})
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
    if(NOT ROOM_OPTIMIZED_TESTS)
      target_compile_options(${name}_test PRIVATE -O0)
    endif()
    target_compile_definitions(${name}_test PRIVATE PLENA_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         TEST_PREFIX "${name}/" PROPERTIES TIMEOUT 900)
  endif()
endfunction()
