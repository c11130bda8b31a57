# Writes the commit of the sources into FILE, when it has changed; run at every build:
#   cmake -D SOURCE=dir -D FILE=commit.h -P WriteCommit.cmake
# GALA_COMMIT in the environment wins, for sources that were copied without their history.
set(commit "$ENV{GALA_COMMIT}")
if(NOT commit)
  execute_process(
    COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit unknown)
endif()
set(text "#define GALA_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${FILE})
  file(READ ${FILE} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${FILE} "${text}")
endif()
