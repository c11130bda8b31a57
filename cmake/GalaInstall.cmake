# Install rules: the library and its headers as gala::gala, and the program.
include(CMakePackageConfigHelpers)

set(gala_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gala)
set(gala_torch_cmake ${TORCH_INSTALL_PREFIX}/share/cmake)

install(TARGETS gala gala_core gala_streams gala_corruptions EXPORT galaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/gala
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "precompiled.h" EXCLUDE)

# The program finds LibTorch where it found it when it was built. (CMake's own
# INSTALL_RPATH_USE_LINK_PATH leaves out folders below the source tree, as .venv is.)
set_target_properties(gala_cli PROPERTIES INSTALL_RPATH ${TORCH_INSTALL_PREFIX}/lib)
install(TARGETS gala_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# What `gala demo` shows.
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/assets
  DESTINATION ${CMAKE_INSTALL_DATADIR}/gala
  PATTERN "*.svg" EXCLUDE)

install(
  EXPORT galaTargets
  NAMESPACE gala::
  DESTINATION ${gala_package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/galaConfig.cmake.in ${PROJECT_BINARY_DIR}/galaConfig.cmake
  INSTALL_DESTINATION ${gala_package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/galaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/galaConfig.cmake ${PROJECT_BINARY_DIR}/galaConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/GalaTorch.cmake DESTINATION ${gala_package_dir})
