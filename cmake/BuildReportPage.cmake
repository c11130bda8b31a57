# Makes OUT, the C++ source with the script of report pages: npm packages into WORK, then web/build.mjs.
# Never fails: without Node, or when npm cannot fetch, OUT says what is missing.
cmake_minimum_required(VERSION 3.25)

function(give_up problem)
  message(STATUS "gala report --format html will not work: ${problem}")
  # JSON quotes make a C++ literal.
  string(REGEX REPLACE "[\\\\\"\n\r\t]" " " problem "${problem}")
  file(WRITE ${OUT} "// failed\n#include \"gala/report/page_assets.h\"\n\nnamespace gala {\n
std::string page_script() {\n  return \"\";\n}
std::string page_style() {\n  return \"\";\n}
std::string page_licences() {\n  return \"\";\n}
std::string page_assets_problem() {\n  return \"${problem}\";\n}\n
}  // namespace gala\n")
endfunction()

if(NOT NODE OR NOT NPM)
  give_up("gala was built without Node (install node and npm, run cmake again and build)")
  return()
endif()
execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^v" "" version "${version}")
if(NOT version VERSION_GREATER_EQUAL 18)
  give_up("gala was built with Node ${version}, 18 or newer is needed")
  return()
endif()

file(MAKE_DIRECTORY ${WORK})
file(COPY ${SOURCE}/ DESTINATION ${WORK} PATTERN node_modules EXCLUDE)

# The packages are installed anew only when their list changes.
file(SHA256 ${SOURCE}/package-lock.json wanted)
set(wanted "${wanted} ${TESTS}")
set(installed "")
if(EXISTS ${WORK}/installed.txt)
  file(READ ${WORK}/installed.txt installed)
endif()
if(NOT "${installed}" STREQUAL "${wanted}")
  set(omit --omit=dev)
  if(TESTS)
    set(omit "")
  endif()
  execute_process(
    COMMAND ${NPM} ci --no-audit --no-fund --fetch-retries=1 ${omit}
    WORKING_DIRECTORY ${WORK}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output
    TIMEOUT 600)
  if(NOT code EQUAL 0)
    file(WRITE ${WORK}/npm.log "${output}")
    give_up("npm could not install the plotting libraries when gala was built (its output is in ${WORK}/npm.log; run cmake again and build to retry)")
    return()
  endif()
  file(WRITE ${WORK}/installed.txt "${wanted}")
endif()

execute_process(
  COMMAND ${NODE} build.mjs ${OUT}
  WORKING_DIRECTORY ${WORK}
  RESULT_VARIABLE code
  ERROR_VARIABLE output)
if(NOT code EQUAL 0)
  file(WRITE ${WORK}/build.log "${output}")
  give_up("the script of the page could not be built (see ${WORK}/build.log)")
endif()
